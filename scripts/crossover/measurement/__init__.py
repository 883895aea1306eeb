"""Measuring processes, and how commands start and supervise them. Imports no pandas, Matplotlib or Snakemake."""

from collections.abc import Callable, Mapping
from typing import Any

Tell = Callable[[dict[str, Any]], None]
"""Receives the messages of a job to its parent:

- `begun`: the columns that are known at the start
- `known`: further columns
- `doing`: the user's code that is about to run, with `remedy`, the advice if it takes too long, and `builds` if this is
  the import or the call of the model's function
- `passing`: the unfinished passes after a trial's timing, with `row`, the row to keep if the process dies
"""


def ignore(_message: Mapping[str, Any]) -> None:
    """Ignore a message; the `tell` of a job without a parent process."""

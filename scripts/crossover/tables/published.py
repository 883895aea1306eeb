"""Published results as a table, to stand beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.config.published_rows import AXES_OF_RESULTS, COUNTS, METRICS, TEXTS

PUBLISHED_COLUMNS = (*AXES_OF_RESULTS, *TEXTS, *METRICS)


def published_table(study: Mapping[str, Any]) -> pd.DataFrame:
    """One row a published run: our axes, label, hardware, and metrics in seconds, bytes and samples per second.

    `study` is its completed file as plan.json has it, with the rows of its source under `published.rows`. What the
    source does not give is None in texts, NA in counts and NaN in metrics.
    """
    rows = (study["published"] or {}).get("rows", ())
    table = pd.DataFrame(
        [dict.fromkeys(PUBLISHED_COLUMNS) | row for row in rows], columns=list(PUBLISHED_COLUMNS), dtype=object
    )
    return table.astype({**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(METRICS, "float64")})


def on_line(published: pd.DataFrame, line: Mapping[str, Any]) -> pd.DataFrame:
    """The published runs that belong beside a line of ours: on every axis that they state they agree with it."""
    fits = pd.Series(True, published.index)
    for axis in AXES_OF_RESULTS:
        if axis in line and axis not in ("size", "device"):
            fits &= (published[axis].isna() | (published[axis] == line[axis])).fillna(False).astype(bool)
    return published[fits]

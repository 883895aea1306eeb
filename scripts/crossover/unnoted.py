"""Rows that a killed run left without a note of what made them: nobody would see that the config has changed since."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from crossover.errors import UserError
from crossover.reading import check_readable, read_arrow, read_each


def check_unnoted(rows: Iterable[tuple[Path, str]]) -> None:
    """Raise UserError where a row cannot be read, or was measured by another command than a job would run today.

    `rows` are paths with the shell commands of today, redirections at their ends.
    """
    commands = dict(rows)
    found, torn = read_each(commands, lambda path: read_arrow(path, "row", ["command"]))
    check_readable(torn)
    others = []
    for path, today in commands.items():
        command = next(iter(found[path].to_pydict().get("command", [])), None)
        measured = shlex.split(command or "")
        if not measured or shlex.split(today)[: len(measured)] != measured:
            others.append(path)
    if others:
        more = f" (and {len(others) - 1} more)" if others[1:] else ""
        raise UserError(
            f"{others[0]}{more}: measured by another command than this config's, in a run that was killed before it "
            "could be noted; delete what was, and run again, or take the config of that run"
        )

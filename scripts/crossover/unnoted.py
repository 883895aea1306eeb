"""Rows that a killed run left without a note of what made them: nobody would see that the config has changed since."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from crossover.errors import UserError


def check_unnoted(rows: Iterable[tuple[Path, str]]) -> None:
    """Raise UserError where a row was measured by another command than the one that a job would run today.

    `rows` are paths with the shell commands of today, redirections at their ends.
    """
    import pyarrow.parquet  # takes a moment, and there is seldom such a row

    others = []
    for path, today in rows:
        with pyarrow.parquet.ParquetFile(path) as file:
            (command,) = file.read(columns=["command"]).column("command").to_pylist()
        measured = shlex.split(command or "")
        if not measured or shlex.split(today)[: len(measured)] != measured:
            others.append(path)
    if others:
        more = f" (and {len(others) - 1} more)" if others[1:] else ""
        raise UserError(
            f"{others[0]}{more}: measured by another command than this config's, in a run that was killed before it "
            "could be noted; delete what was, and run again, or take the config of that run"
        )

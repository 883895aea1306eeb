"""Rows that a killed run left without a note of what made them: nobody would see that the config has changed since."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from crossover.errors import UserError
from crossover.reading import check_readable, read_arrow, read_each


def check_unnoted(rows: Iterable[tuple[Path, str, str | None]]) -> None:
    """Raise UserError where a row cannot be read, or was measured by another command or code than a job's of today.

    `rows` are paths with the shell commands of today, redirections at their ends, and the keys of today's code, None
    where these are not known.
    """
    jobs = {path: (today, key) for path, today, key in rows}
    found, torn = read_each(jobs, lambda path: read_arrow(path, "row", ["command", "code_key"]))
    check_readable(torn)
    others = []
    for path, (today, key) in jobs.items():
        (row,) = found[path].to_pylist() or [{}]
        measured = shlex.split(row.get("command") or "")
        same_command = bool(measured) and shlex.split(today)[: len(measured)] == measured
        if not same_command or key not in (None, row.get("code_key")):
            others.append(path)
    if others:
        more = f" (and {len(others) - 1} more)" if others[1:] else ""
        raise UserError(
            f"{others[0]}{more}: measured by another command than this config's, or by other code, in a run that was "
            "killed before it could be noted; delete what was, and run again, or take the config and code of that run"
        )

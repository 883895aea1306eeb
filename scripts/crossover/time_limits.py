"""Notes about jobs that the time limit ended, so that only these run again after the limit is raised.

The limit is not part of a result's key, since it changes no number. Instead, the number of times that a job's limit was
raised above the noted one is a parameter of the job. It stays the same once the job has run under the new limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from crossover.files import atomic_path

NOTES = "time_limits"
"""The folder of the notes in a results folder."""

REMEDY = "raise time_limit_s"
"""Phrase in the `reason` of a result whose job ran into the time limit."""


@dataclass(frozen=True)
class Note:
    """How often the time limit of a job was raised, and the limit that ended its last run, if any."""

    raised: int = 0
    limit_s: float | None = None
    """The limit that ended the last run; None if that run finished."""

    def raised_with(self, limit_s: float) -> int:
        """Number of times the limit was raised, including a next run under `limit_s`."""
        return self.raised + (self.limit_s is not None and limit_s > self.limit_s)


def read_notes(folder: Path) -> Mapping[str, Note]:
    """All notes below a folder, by relative path."""
    return {file.relative_to(folder).as_posix(): _read(file) for file in folder.rglob("*.json")}


def note_end(file: str | None, limit_s: float, reason: str | None) -> None:
    """Note how a job under a time limit ended, if a file is given."""
    if file is None:
        return
    path = Path(file)
    limited = REMEDY in (reason or "")
    note = Note(_read(path).raised_with(limit_s), limit_s if limited else None)
    if note == Note():
        path.unlink(missing_ok=True)
        return
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(asdict(note)), encoding="utf-8")


def _read(path: Path) -> Note:
    try:
        return Note(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # no note, or a truncated one
        return Note()

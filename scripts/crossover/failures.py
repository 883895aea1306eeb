"""The number of a job's failures, a parameter of rules that keep their earlier outputs when a job fails.

Snakemake (9.27) restores a failed job's outputs that are flagged with `update`, but records them as made with the new
inputs and parameters. The changed number of failures makes the next run do the job again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crossover.files import atomic_path


def failures(path_to_log: Path) -> int:
    """How often the job with this log has begun and not succeeded."""
    note = path_to_log.with_suffix(".failures")
    return int(note.read_text(encoding="utf-8")) if note.is_file() else 0


@contextmanager
def counted_failure(path_to_log: Path) -> Iterator[None]:
    """Count a failure of the job with this log, unless the block succeeds."""
    before, note = failures(path_to_log), path_to_log.with_suffix(".failures")
    _write(note, before + 1)
    yield
    if before:
        _write(note, before)
    else:
        note.unlink()


def _write(note: Path, count: int) -> None:
    with atomic_path(note) as temporary:
        temporary.write_text(str(count), encoding="utf-8")

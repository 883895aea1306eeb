"""How often a job has failed, as a parameter of rules whose earlier outputs outlive a failure.

Snakemake (9.27) restores the outputs of a failed job that are flagged with `update`, but notes them as made with the
inputs and parameters that failed. So the next run would keep them, if the number of failures were not another one then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crossover.files import atomic_path


def failures(path_to_log: Path) -> int:
    """How often the job with this log has begun and not come to a good end, in whatever way it ended."""
    note = _note(path_to_log)
    return int(note.read_text(encoding="utf-8")) if note.is_file() else 0


@contextmanager
def counted_failure(path_to_log: Path) -> Iterator[None]:
    """Count a failure of the job with this log, unless the block succeeds."""
    before, note = failures(path_to_log), _note(path_to_log)
    _write(note, before + 1)
    yield
    if before:
        _write(note, before)
    else:
        note.unlink()


def _note(path_to_log: Path) -> Path:
    return path_to_log.with_suffix(".failures")


def _write(note: Path, count: int) -> None:
    with atomic_path(note) as temporary:
        temporary.write_text(str(count), encoding="utf-8")

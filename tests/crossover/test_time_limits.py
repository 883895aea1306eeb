"""Notes of the jobs that the time limit ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossover.time_limits import Note, note_end, read_notes

LIMITED = "memory pass: not done after 30 s; raise time_limit_s; not begun: profile"


def test_a_job_that_the_limit_never_ended_leaves_no_note(tmp_path: Path) -> None:
    note_end(tmp_path / "trial" / "1.json", 30, None)
    note_end(None, 30, LIMITED)
    assert read_notes(tmp_path) == {}
    assert read_notes(tmp_path / "missing") == {}


def test_a_limit_counts_as_raised_once_for_each_time_it_ended_the_job(tmp_path: Path) -> None:
    path = tmp_path / "trial" / "1.json"
    note_end(path, 30, LIMITED)
    assert read_notes(tmp_path) == {"trial/1.json": Note(0, 30)}
    note_end(path, 30, LIMITED)  # measured again for another reason
    assert read_notes(tmp_path) == {"trial/1.json": Note(0, 30)}
    note_end(path, 60, LIMITED)
    assert read_notes(tmp_path) == {"trial/1.json": Note(1, 60)}
    note_end(path, 90, "out of memory")
    assert read_notes(tmp_path) == {"trial/1.json": Note(2, None)}


@pytest.mark.parametrize(("limit_s", "raised"), [(20, 1), (30, 1), (31, 2)])
def test_only_a_higher_limit_is_raised(limit_s: float, raised: int) -> None:
    assert Note(1, 30).raised_with(limit_s) == raised
    assert Note(1, None).raised_with(limit_s) == 1

"""Notes about jobs that the time limit ended."""

from __future__ import annotations

from pathlib import Path

from crossover.time_limits import note_end, read_notes

LIMITED = "memory pass: not done after 30 s; raise time_limit_s; not begun: profile"


def test_a_job_that_the_limit_never_ended_leaves_no_note(tmp_path: Path) -> None:
    note_end(str(tmp_path / "trial" / "1.json"), 30, None)
    note_end(None, 30, LIMITED)
    assert read_notes(tmp_path) == {}
    assert read_notes(tmp_path / "missing") == {}

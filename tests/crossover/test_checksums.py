from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from crossover.checksums import note_checksums

Files = list[str]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Two files, of which the second is the newer one."""
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for age_s, path in zip((200, 100), paths, strict=True):
        path.write_text(path.name)
        os.utime(path, (1e9 - age_s, 1e9 - age_s))
    return [str(path) for path in paths]


@pytest.fixture
def note(files: Files, tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "note"
    note_checksums(files, path)
    return path


def test_it_holds_the_sum_of_each_file_and_is_as_new_as_the_newest(files: Files, note: Path) -> None:
    sums = [hashlib.sha256(Path(file).name.encode()).hexdigest() for file in files]
    assert note.read_text() == f"{sums[0]}  {files[0]}\n{sums[1]}  {files[1]}\n"
    assert note.stat().st_mtime == 1e9 - 100


def test_a_file_that_is_only_touched_changes_nothing(files: Files, note: Path) -> None:
    Path(files[0]).touch()
    note_checksums(files, note)
    assert note.stat().st_mtime == 1e9 - 100


def test_a_lost_note_comes_back_as_old_as_it_was(files: Files, note: Path) -> None:
    note.unlink()
    note_checksums(files, note)
    assert note.stat().st_mtime == 1e9 - 100


@pytest.mark.parametrize("change", ["edit", "go back", "delete"])
def test_whatever_changes_makes_it_new(files: Files, note: Path, change: str) -> None:
    """An older version of a file may bring an older time with it, and a file that is gone has none."""
    if change == "delete":
        files = files[:1]
    else:
        Path(files[0]).write_text("changed")
    if change == "go back":
        os.utime(files[0], (1e9 - 300, 1e9 - 300))
    note_checksums(files, note)
    assert note.stat().st_mtime > 1e9

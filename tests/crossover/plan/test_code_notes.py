from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crossover.machine.code_key import Code
from crossover.plan.code_notes import note_code
from crossover.tables.columns import Measurement
from crossover.tables.row_files import write_record


@pytest.fixture
def code(tmp_path: Path) -> Code:
    """Of two files, of which the second is the newer one."""
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for age_s, path in zip((200, 100), paths, strict=True):
        path.touch()
        os.utime(path, (1e9 - age_s, 1e9 - age_s))
    return Code({path.stem: path for path in paths}, {"a": "x", "b": "y"}, {"torch": "2.13"})


@pytest.fixture
def note(code: Code, tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "note"
    note_code(code, path, [])
    return path


def test_it_says_what_the_code_is_and_is_as_new_as_the_newest_file(code: Code, note: Path) -> None:
    expected = {"key": code.key, "packages": {"torch": "2.13"}, "code": {"a": "x", "b": "y"}}
    assert json.loads(note.read_text()) == expected
    assert note.stat().st_mtime == 1e9 - 100


def test_a_file_that_is_only_touched_changes_nothing(code: Code, note: Path) -> None:
    code.files["a"].touch()
    note_code(code, note, [])
    assert note.stat().st_mtime == 1e9 - 100


@pytest.mark.parametrize(
    "change", [{"digests": {"a": "x", "b": "z"}}, {"digests": {"a": "x"}}, {"packages": {"torch": "2.12"}}]
)
def test_whatever_changes_makes_it_new(code: Code, note: Path, change: dict[str, dict[str, str]]) -> None:
    """An older version of a file may bring an older time with it, and a file that is gone has none."""
    changed = replace(code, **change)
    assert changed.key != code.key
    note_code(changed, note, [])
    assert note.stat().st_mtime > 1e9


@pytest.mark.parametrize(
    ("keys", "is_new"), [([], False), (["today"], False), (["today", "other"], True), ([None], True), (["torn"], False)]
)
@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_a_lost_note_is_new_if_a_result_is_of_other_code(
    code: Code, note: Path, tmp_path: Path, keys: Sequence[str | None], is_new: bool, suffix: str
) -> None:
    """Then it is newer than the results, and these are made again; a torn one says nothing of its code."""
    results = []
    for number, word in enumerate(keys):
        results.append(tmp_path / f"{number}.{suffix}")
        key = code.key if word == "today" else word
        if word == "torn":
            results[-1].write_text("PAR1{")
        elif suffix == "json":
            results[-1].write_text(json.dumps({"code_key": key}))
        else:
            write_record(Measurement(code_key=key), results[-1])
    note.unlink()
    note_code(code, note, results)
    assert (note.stat().st_mtime > 1e9) is is_new

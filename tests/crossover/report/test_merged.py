"""What the provenance of merged runs says, and why not to rely on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover.report.provenance import read_provenances, sha256_of

TOLD: dict[str, Any] = {
    "made_at": "then",
    "code": {},
    "config": {},
    "studies": {},
    "rerun": [],
    "files": [],
    "runs": [],
}


def read(folder: Path, text: str | None) -> dict[str, Any]:
    (folder / "measurements.parquet").write_bytes(b"rows")
    if text is not None:
        (folder / "provenance.json").write_text(text)
    (found,) = read_provenances([("h200", folder)])
    return found


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        (None, "no_file"),
        ("{", "unreadable"),
        ("[]", "unreadable"),
        (json.dumps(TOLD | {"rerun": 1}), "unreadable"),
        (json.dumps(TOLD | {"files": [{"name": "measurements.parquet", "sha256": "0"}]}), "other_rows"),
        (json.dumps(TOLD), None),
    ],
)
def test_a_doubt_is_named(tmp_path: Path, text: str | None, doubt: str | None) -> None:
    found = read(tmp_path, text)
    assert (found["name"], found["doubt"]) == ("h200", doubt)
    assert (found["provenance"] is not None) is (doubt in (None, "other_rows"))


def test_the_rows_of_the_report_raise_no_doubt(tmp_path: Path) -> None:
    (tmp_path / "measurements.parquet").write_bytes(b"rows")
    listed = {"name": "measurements.parquet", "sha256": sha256_of(tmp_path / "measurements.parquet")}
    assert read(tmp_path, json.dumps(TOLD | {"files": [listed]}))["doubt"] is None


def test_a_merged_run_is_followed_by_those_that_it_holds(tmp_path: Path) -> None:
    held = {"name": "laptop", "folder": "results", "provenance": TOLD, "doubt": None}
    (tmp_path / "provenance.json").write_text(json.dumps(TOLD | {"config": None, "runs": [held]}))
    found = read_provenances([("both", tmp_path)])
    assert [(run["name"], run["doubt"]) for run in found] == [("both", None), ("both, laptop", None)]

"""What merged runs say of themselves, as their folders have it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from crossover.tables.merged_provenance import (
    NO_FILE,
    NOT_READABLE,
    OTHER_ROWS,
    completeness_notes,
    merged_views,
    read_provenances,
)
from crossover.tables.merged_runs import MergedRun

TOLD: dict[str, Any] = {
    "made_at": "then",
    "run": {"command": "snakemake --cores 4", "folder": "/there"},
    "code": {"code_version": "a-dirty", "changed": ["Snakefile"]},
    "config": {"trials": 3},
    "studies": {"disc_depth": {"sizes": [2]}},
    "rerun": ["snakemake --cores 4"],
}


@pytest.fixture
def run(tmp_path: Path) -> MergedRun:
    return MergedRun(str(tmp_path), "h200")


def test_a_runs_own_provenance_is_carried_along_whole(run: MergedRun) -> None:
    run.provenance.write_text(json.dumps(TOLD | {"more": [1, None]}))
    (found,) = read_provenances([run])
    assert found == {"name": "h200", "folder": run.folder, "provenance": TOLD | {"more": [1, None]}, "doubt": None}
    (view,) = merged_views([found])
    assert (view["name"], view["command"], view["commit"], view["changed"]) == (
        *("h200", "snakemake --cores 4", "a-dirty"),
        ["Snakefile"],
    )
    assert (view["config"], view["studies"]) == (TOLD["config"], TOLD["studies"])


def test_a_run_without_a_name_is_called_as_its_folder(run: MergedRun) -> None:
    assert read_provenances([MergedRun(run.folder)])[0]["name"] == run.folder


@pytest.mark.parametrize(("text", "doubt"), [(None, NO_FILE), ("{half", NOT_READABLE), ("[1]", NOT_READABLE)])
def test_a_run_that_says_nothing_of_itself_is_told_as_such(run: MergedRun, text: str | None, doubt: str) -> None:
    if text is not None:
        run.provenance.write_text(text)
    found = read_provenances([run])
    assert (found[0]["provenance"], found[0]["doubt"]) == (None, doubt)
    (view,) = merged_views(found)
    assert (view["is_known"], view["command"], view["config"]) == (False, None, {})


def test_rows_that_are_no_longer_those_of_its_report_are_in_doubt(run: MergedRun) -> None:
    rows = Path(run.folder, "measurements.parquet")
    rows.write_bytes(b"rows")
    fact = {"name": rows.name, "sha256": hashlib.sha256(b"rows").hexdigest()}
    run.provenance.write_text(json.dumps(TOLD | {"files": [fact]}))
    assert read_provenances([run])[0]["doubt"] is None
    rows.write_bytes(b"other rows")
    assert read_provenances([run])[0]["doubt"] == OTHER_ROWS


def test_runs_that_were_merged_before_are_told_too(run: MergedRun) -> None:
    inner = {"name": "a100", "folder": "there", "provenance": TOLD, "doubt": None}
    run.provenance.write_text(json.dumps({"runs": [inner, "no run"]}))
    assert [(view["name"], view["commit"]) for view in merged_views(read_provenances([run]))] == [
        ("h200", None),
        ("h200, a100", "a-dirty"),
    ]


@pytest.mark.parametrize(
    ("told", "notes"),
    [
        (TOLD | {"partial": None}, []),
        (
            TOLD | {"partial": "129 of 156 trials have finished"},
            ["The run of h200 had not finished when it was reported: 129 of 156 trials have finished."],
        ),
        (
            TOLD,
            ["How much of the run of h200 has finished is not known: its provenance.json does not say."],
        ),
        (None, [f"How much of the run of h200 has finished is not known: {NO_FILE}."]),
    ],
)
def test_of_each_run_it_is_told_whether_something_is_missing(
    run: MergedRun, told: dict[str, Any] | None, notes: list[str]
) -> None:
    if told is not None:
        run.provenance.write_text(json.dumps(told))
    assert completeness_notes(read_provenances([run])) == notes


def test_a_file_of_any_other_shape_is_no_error(run: MergedRun) -> None:
    run.provenance.write_text(
        '{"run": 1, "code": [], "config": "x", "studies": null, "rerun": {}, "files": 5, "runs": 7, "n": NaN}'
    )
    (found,) = read_provenances([run])
    assert found["provenance"]["n"] is None
    (view,) = merged_views([found])
    assert (view["command"], view["commit"], view["config"], view["rerun"]) == (None, None, {}, [])

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.config.studies import Cell
from crossover.config.words import DISTURBED, FLAGS
from crossover.tables.columns import Measurement, arrow_schema
from crossover.tables.frames import collect_rows
from crossover.tables.merged_runs import join_runs
from crossover.tables.repeats import disturbed_trials, least_disturbed

Row = Callable[..., dict[str, Any]]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema())


def counting(row: Row, *values: dict[str, Any]) -> int | None:
    """Which repeat counts of the rows of one trial."""
    (found,) = least_disturbed(table([row(**own) for own in values])).to_pylist()
    return found["repeat"]


def test_the_flags_of_a_disturbance_are_flags() -> None:
    assert set(DISTURBED) < set(FLAGS)


@pytest.mark.parametrize(
    ("before", "after", "repeat"),
    [
        ({"flags": ["busy_host"]}, {"flags": []}, 1),
        ({"flags": ["busy_host"]}, {"flags": ["busy_host"]}, 0),
        ({"flags": ["busy_host", "throttled"]}, {"flags": ["throttled"]}, 1),
        ({"flags": ["quota"]}, {"flags": ["busy_host", "quota"]}, 0),
        ({"flags": ["busy_host"]}, {"flags": ["drift"]}, 1),  # no disturbance: the step's own
        ({"flags": ["busy_host"]}, {"flags": [], "status": "timeout", "step_time_s": None}, 0),
        ({"flags": ["busy_host"]}, {"flags": ["incomplete"]}, 0),  # it lacks a pass that the first has
        ({"flags": ["busy_host", "incomplete"]}, {"flags": ["incomplete"]}, 1),
        ({"flags": ["busy_host"], "others_cpus": 1.5}, {"flags": ["busy_host"], "others_cpus": 0.5}, 1),
        ({"flags": ["busy_host"], "others_cpus": 0.5}, {"flags": ["busy_host"], "others_cpus": 1.5}, 0),
        ({"flags": ["quota"], "others_cpus": 0.5}, {"flags": ["busy_host", "quota"], "others_cpus": 0.4}, 0),
        ({"flags": [], "others_cpus": 0.2}, {"flags": [], "others_cpus": 0.1}, 0),
        ({"flags": []}, {"flags": []}, 0),  # the first was deleted, and measured anew since
        ({"flags": [], "status": "oom"}, {"flags": []}, 0),
    ],
)
def test_a_repeat_counts_if_it_has_a_time_and_was_less_disturbed(
    row: Row, before: dict[str, Any], after: dict[str, Any], repeat: int
) -> None:
    assert counting(row, {**before, "repeat": 0}, {**after, "repeat": 1}) == repeat
    assert counting(row, {**after, "repeat": 1}, {**before, "repeat": 0}) == repeat


def test_the_first_of_the_least_disturbed_rows_counts(row: Row) -> None:
    repeats = [{"flags": flags, "repeat": n} for n, flags in enumerate((["busy_host", "quota"], ["quota"], ["quota"]))]
    assert counting(row, *repeats) == 1
    assert counting(row, *repeats, {"flags": [], "repeat": 3}) == 3


def test_each_trial_of_each_cell_keeps_one_row_in_its_order(row: Row) -> None:
    rows = [row(size=size, trial=trial, repeat=0, flags=["busy_host"]) for size in (2, 3) for trial in (1, 2)]
    rows.insert(1, row(size=2, trial=1, repeat=1))
    found = least_disturbed(table(rows)).to_pylist()
    assert [(one["size"], one["trial"], one["repeat"]) for one in found] == [(2, 1, 1), (2, 2, 0), (3, 1, 0), (3, 2, 0)]
    unrepeated = table([row(), row(trial=2)])  # as of a version without repeats
    assert least_disturbed(unrepeated) == unrepeated
    assert least_disturbed(table([])).num_rows == 0


def test_disturbed_are_the_trials_with_a_time_whose_flags_say_so(row: Row) -> None:
    rows = [
        row(trial=1, flags=["busy_host", "drift", "quota"]),
        row(trial=2, flags=["drift"]),
        row(trial=3, flags=["throttled"], device="cuda"),
        row(trial=4, flags=["busy_host"], status="invalid"),
        row(trial=5, flags=None),
    ]
    cell = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 4, "cpu")
    gpu = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 4, "cuda")
    assert disturbed_trials(table(rows)) == {cell: {1: ["busy_host", "quota"]}, gpu: {3: ["throttled"]}}


def write(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """Rows as a run has them, one a file."""
    paths = []
    for values in rows:
        suffix = f"-repeat-{values['repeat']}" if values["repeat"] else ""
        paths.append(folder / "cells" / f"trial-{values['trial']}{suffix}.parquet")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table([values]), paths[-1])
    return paths


def test_later_trials_count_as_the_first_row_that_counts_allows(row: Row, tmp_path: Path) -> None:
    """The repeat of a first trial has the numerical check too; here its answer was wrong, and the first row stays."""
    version = {"schema_version": Measurement.schema_version}
    right = row(**version, trial=1, repeat=0, flags=["busy_host"], answer="right")
    wrong = row(**version, trial=1, repeat=1, status="invalid", answer="wrong", step_time_s=None)
    later = row(**version, trial=2, repeat=0)
    paths = write(tmp_path, [right, wrong, later])
    for rows in (collect_rows(paths), join_runs([("a", tmp_path)]).rows):
        found = rows.to_pylist()
        assert [(one["trial"], one["repeat"], one["status"]) for one in found] == [(1, 0, "ok"), (2, 0, "ok")]

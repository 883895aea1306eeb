"""Reading rows from files and joining them: which rows of a cell count, and with which status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.config.studies import SEARCH_VERSION, Cell
from crossover.errors import UserError
from crossover.tables import rows
from crossover.tables.columns import Measurement, arrow_schema, write_record
from crossover.tables.frames import records
from crossover.tables.guards import check_environments
from crossover.tables.rows import (
    apply_first_trial,
    collect_rows,
    collect_searches,
    disturbed_trials,
    least_disturbed,
    read_trials,
)
from crossover.tables.run_tables import TABLES

Row = Callable[..., dict[str, Any]]
WRONG = {"status": "invalid", "reason": "the answer is off", "check": "failed"}
CRASHED = {"status": "invalid", "reason": "it crashed", "flag_names": None}
DISTURBED = {"status": "invalid", "reason": "other processes", "check": "passed"}
WHY = "only a cell's first trial is checked, and it "


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema())


def written(folder: Path, **values: object) -> Path:
    path = folder / f"{'-'.join(map(str, values.values()))}.parquet"
    write_record(Measurement(study="s", **values), path)
    return path


def test_rows_are_joined_in_the_order_of_cells_and_trials(tmp_path: Path) -> None:
    paths = [written(tmp_path, size=size, trial=trial) for size in (10, 9) for trial in (2, 1)]
    table = collect_rows(paths)
    assert (table["size"].to_pylist(), table["trial"].to_pylist()) == ([9, 9, 10, 10], [1, 2, 1, 2])
    assert table.schema == arrow_schema()  # even if all values of a column are missing


def test_one_error_lists_all_unusable_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three parts of the files are read, in one process or two."""
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 3)
    good = [written(tmp_path, size=size) for size in range(3)]
    torn = [tmp_path / f"{name}.parquet" for name in ("cut", "empty", "old", "other", "typed")]
    cut, empty, old, other, typed = torn
    cut.write_bytes(good[0].read_bytes()[:-100])
    empty.touch()
    write_record(Measurement(schema_version=0), old)
    pq.write_table(pa.table({"size": [1]}), other)
    row = pq.read_table(good[0])
    pq.write_table(row.set_column(row.column_names.index("threads"), "threads", [["two"]]), typed)
    for processes in (1, 2):
        with pytest.raises(UserError, match="5 files in all cannot be used; delete them and run again: rm ") as caught:
            collect_rows([cut, *good, *torn[1:]], processes=processes)
        assert str(caught.value).startswith(f"{cut}: not a readable row (")
        assert str(caught.value).endswith(f"rm {' '.join(map(str, torn))}")


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({}, ("ok", None, [])),
        ({"flag_names": ["not_checked"], "check": "not_checked"}, ("ok", None, [])),  # the first trial's flag is enough
        (WRONG, ("invalid", "the answer is off", [])),
        (CRASHED, ("invalid", "it crashed", [])),
        (DISTURBED | {"check": "not_checked"}, ("ok", f"{WHY}ended with status invalid", ["not_checked"])),
        (None, ("ok", f"{WHY}is missing", ["not_checked"])),
    ],
)
def test_the_check_of_the_first_trial_applies_to_later_trials(
    row: Row, first: dict[str, Any] | None, later: tuple[object, ...]
) -> None:
    """Only one of two cells is affected. A later trial that is not ok stays unchanged."""
    others = [row(size=5, trial=trial) for trial in (1, 2)]
    cell_rows = [] if first is None else [row(size=4, trial=1, **first)]
    cell_rows += [row(size=4, trial=2), row(size=4, trial=3, status="oom", reason="full", flag_names=["drift"])]
    table = pa.Table.from_pylist([*cell_rows, *others], schema=arrow_schema())
    judged = apply_first_trial(table)
    assert judged.schema == table.schema
    before, rows = (part.select(["status", "reason", "flag_names"]).to_pylist() for part in (table, judged))
    assert tuple(rows[-4].values()) == later
    assert tuple(rows[-3].values()) == ("oom", "full", ["drift"])
    assert rows[:-4] == before[:-4]
    assert rows[-2:] == [{"status": "ok", "reason": None, "flag_names": []}] * 2


@pytest.mark.parametrize(
    ("share", "beside", "flags"),
    [
        (0.51, 1, ["side_by_side"]),
        (0.5, 1, []),
        (0.9, 0, []),
        (0.9, None, []),
        (None, 1, []),
    ],
)
def test_the_profile_of_the_first_trial_flags_trials_side_by_side(
    row: Row, share: float | None, beside: int | None, flags: list[str]
) -> None:
    """Only the first trial is profiled. A trial that is not ok, or flagged already, stays unchanged."""
    table = pa.Table.from_pylist(
        [
            row(trial=1, host_bound_share=share, leased_beside=1, flag_names=["side_by_side"]),
            row(trial=2, leased_beside=beside),
            row(trial=3, leased_beside=1, status="oom", flag_names=None),
            row(trial=2, leased_beside=1, size=5),
        ],
        schema=arrow_schema(),
    )
    flags_after = apply_first_trial(table)["flag_names"].to_pylist()
    assert flags_after == [["side_by_side"], flags, None, ["not_checked"]]


def counting(row: Row, *values: dict[str, Any]) -> int | None:
    (selected,) = least_disturbed(table([row(**row_values) for row_values in values])).to_pylist()
    return selected["repeat"]


@pytest.mark.parametrize(
    ("before", "after", "repeat"),
    [
        ({"flag_names": ["busy_host"]}, {"flag_names": []}, 1),
        ({"flag_names": ["busy_host"]}, {"flag_names": ["drift"]}, 1),  # not a disturbance, but a property of the step
        ({"flag_names": ["busy_host"]}, {"flag_names": [], "status": "timeout", "step_time_s": None}, 0),
        (
            {"flag_names": ["busy_host"]},
            {"flag_names": ["incomplete"]},
            0,
        ),  # the repeat lacks a pass that the first row has
        ({"flag_names": ["busy_host"], "others_cpus": 1.5}, {"flag_names": ["busy_host"], "others_cpus": 0.5}, 1),
        ({"flag_names": ["quota"], "others_cpus": 0.5}, {"flag_names": ["busy_host", "quota"], "others_cpus": 0.4}, 0),
        ({"flag_names": [], "others_cpus": 0.2}, {"flag_names": [], "others_cpus": 0.1}, 0),
        ({"flag_names": [], "status": "oom"}, {"flag_names": []}, 0),
    ],
)
def test_a_repeat_counts_if_it_has_a_time_and_was_less_disturbed(
    row: Row, before: dict[str, Any], after: dict[str, Any], repeat: int
) -> None:
    assert counting(row, {**before, "repeat": 0}, {**after, "repeat": 1}) == repeat
    assert counting(row, {**after, "repeat": 1}, {**before, "repeat": 0}) == repeat


def test_the_first_of_the_least_disturbed_rows_counts(row: Row) -> None:
    repeats = [
        {"flag_names": flags, "repeat": n} for n, flags in enumerate((["busy_host", "quota"], ["quota"], ["quota"]))
    ]
    assert counting(row, *repeats) == 1
    assert counting(row, *repeats, {"flag_names": [], "repeat": 3}) == 3


def test_one_row_of_each_trial_is_kept_in_order(row: Row) -> None:
    rows = [row(size=size, trial=trial, repeat=0, flag_names=["busy_host"]) for size in (2, 3) for trial in (1, 2)]
    rows.insert(1, row(size=2, trial=1, repeat=1))
    counting = least_disturbed(table(rows)).to_pylist()
    assert [(trial["size"], trial["trial"], trial["repeat"]) for trial in counting] == [
        (2, 1, 1),
        (2, 2, 0),
        (3, 1, 0),
        (3, 2, 0),
    ]
    unrepeated = table([row(), row(trial=2)])  # like rows of a version without repeats
    assert least_disturbed(unrepeated) == unrepeated
    assert least_disturbed(table([])).num_rows == 0


def test_disturbed_trials_have_a_time_and_a_flag_of_disturbance(row: Row) -> None:
    rows = [
        row(trial=1, flag_names=["busy_host", "drift", "quota"]),
        row(trial=2, flag_names=["drift"]),
        row(trial=3, flag_names=["throttled"], device="cuda"),
        row(trial=4, flag_names=["busy_host"], status="invalid"),
        row(trial=5, flag_names=None),
    ]
    cell = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 4, "cpu")
    gpu = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 4, "cuda")
    assert disturbed_trials(table(rows)) == {cell: {1: ["busy_host", "quota"]}, gpu: {3: ["throttled"]}}


def test_later_trials_depend_on_the_row_that_is_used_of_the_first(row: Row, tmp_path: Path) -> None:
    """The repeat of the first trial has a wrong result, so its first row is used."""
    version = {"schema_version": Measurement.schema_version}
    right = row(**version, trial=1, repeat=0, flag_names=["busy_host"], check="passed")
    wrong = row(**version, trial=1, repeat=1, status="invalid", check="failed", step_time_s=None)
    later = row(**version, trial=2, repeat=0)
    paths = [tmp_path / f"{rank}.parquet" for rank in range(3)]
    for path, values in zip(paths, (right, wrong, later), strict=True):
        pq.write_table(table([values]), path)
    rows = collect_rows(paths).to_pylist()
    assert [(row["trial"], row["repeat"], row["status"]) for row in rows] == [(1, 0, "ok"), (2, 0, "ok")]


AXES = {"study": "mine", "workload": "disc_mlp", "variant": "plain", "protocol": "resident", "precision": "fp32"}


def search(path: Path, **values: Any) -> Path:
    plain = AXES | {"execution": "eager", "size": 3, "device": "cpu", "status": "ok", "schema_version": SEARCH_VERSION}
    path.write_text(json.dumps(plain | {"tries": [{"duration_s": 1.5}, {"duration_s": 2.0}]} | values))
    return path


def test_a_search_is_read_as_a_row(tmp_path: Path) -> None:
    finished = search(tmp_path / "a.json", size=9, largest=14336, smallest_failing=14337, throughput_samples_per_s=24e3)
    none = search(tmp_path / "b.json", status="oom", reason="full", smallest_failing=1, tries=[], machine="h200")
    table = collect_searches([finished, none])
    assert list(table.columns) == list(TABLES["cells"])
    first, second = records(table)
    assert (first["size"], first["largest_batch"], first["status"], first["machine"]) == (3, None, "oom", "h200")
    assert (second["size"], second["largest_batch"], second["machine"]) == (9, 14336, "here")
    assert (second["throughput_samples_per_s"], second["tries_count"], second["search_s"]) == (24_000, 2, 3.5)


def test_searches_with_different_versions_are_found(tmp_path: Path) -> None:
    facts = dict.fromkeys(("hostname", "device_name", "cpu_model", "driver_version", "cuda_version"), "same")
    paths = [search(tmp_path / f"{n}.json", size=n, **facts, torch_version=f"2.{n}") for n in (1, 2)]
    with pytest.raises(UserError, match=r"torch_version \(2\.1, 2\.2\)"):
        check_environments(pa.Table.from_pandas(collect_searches(paths)), several_hosts=True)


UNREADABLE = "not a readable search; delete it and run again"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, UNREADABLE) for text in ("", "[]", "{}", "half of {")),
        (f'{{"schema_version": {SEARCH_VERSION}, "tries": 3}}', UNREADABLE),
        ('{"schema_version": 0, "tries": []}', "written by another version"),
    ],
)
def test_an_unreadable_search_is_rejected(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"cpu\.json: {reason}"):
        collect_searches([path])


def test_trials_of_a_version_that_named_a_column_otherwise_are_read(row: Row, tmp_path: Path) -> None:
    trials = table([row(flag_names=["drift"])])
    names = ["flags" if name == "flag_names" else name for name in trials.column_names]
    pq.write_table(trials.rename_columns(names), tmp_path / "trials.parquet")
    assert read_trials(tmp_path / "trials.parquet", ["flag_names"], "").column("flag_names").to_pylist() == [["drift"]]

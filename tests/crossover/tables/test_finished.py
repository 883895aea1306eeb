from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.tables.columns import SCHEMA_VERSION, arrow_schema
from crossover.tables.finished import EXCLUDED, NOT_YET, STOPPED, finished_rows, missing_results

Row = Callable[..., dict[str, Any]]
CELL = "disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-4/cpu"


@pytest.fixture
def write(tmp_path: Path, row: Row) -> Callable[..., Path]:
    def build(trial: int, **values: Any) -> Path:
        path = tmp_path / "results" / "cells" / CELL / f"trial-{trial}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = row(trial=trial, schema_version=SCHEMA_VERSION, **values)
        pq.write_table(pa.Table.from_pylist([record], schema=arrow_schema()), path)
        return path

    return build


def row_path(folder: Path, trial: int) -> Path:
    return folder / "results" / "cells" / CELL / f"trial-{trial}.parquet"


def reasons(folder: Path, trials: int, collected: pd.DataFrame | None = None) -> list[tuple[str, str]]:
    paths_of = {"trial": [row_path(folder, trial) for trial in range(1, trials + 1)]}
    tables_of = {} if collected is None else {"trial": collected}
    return [(result.kind, result.reason) for result in missing_results(paths_of, tables_of)]


def log(folder: Path, trial: int, text: str) -> None:
    path = folder / "results" / "logs" / "measure_cell" / CELL / f"trial-{trial}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_reason_for_a_missing_row_comes_from_its_log(tmp_path: Path) -> None:
    log(tmp_path, 1, "waiting for a GPU\nerror: first\nerror: no such file; give another\n")
    log(tmp_path, 2, 'Traceback (most recent call last):\n  File "x.py"\nValueError: wrong\n')
    log(tmp_path, 3, "waiting for a GPU\n")
    log(tmp_path, 4, "")
    assert reasons(tmp_path, 5) == [
        ("failed", "no such file; give another"),
        ("failed", "ValueError: wrong"),
        ("missing", STOPPED),
        ("missing", STOPPED),
        ("missing", NOT_YET),
    ]


def test_a_collected_row_is_not_missing(tmp_path: Path, write: Callable[..., Path]) -> None:
    log(tmp_path, 1, "error: of an earlier try\n")
    write(1)
    rows = finished_rows([row_path(tmp_path, trial) for trial in (1, 2)], several_hosts=False)
    assert rows["trial"].to_pylist() == [1]
    assert reasons(tmp_path, 2, rows.to_pandas()) == [("missing", NOT_YET)]


def test_the_axes_of_a_missing_result_come_from_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    paths_of = {
        "trial": [row_path(tmp_path, 1)],
        "training": [folder / "trainings" / CELL / "seed-3.parquet"],
        "search": [folder / "largest_batch" / f"{CELL.replace('/batch-100', '')}.json"],
    }
    missing = [
        (result.work, result.axes["study"], result.axes["batch_size"], result.axes["size"])
        for result in missing_results(paths_of, {})
    ]
    assert missing == [
        ("trial", "disc_depth", 100, 4),
        ("training", "disc_depth", 100, 4),
        ("search", "disc_depth", None, 4),
    ]


def test_unreadable_rows_are_left_out_and_listed(tmp_path: Path, write: Callable[..., Path]) -> None:
    paths = [write(1), write(2), write(3)]
    paths[0].write_bytes(b"PAR1")
    table = pq.read_table(paths[1], partitioning=None)
    pq.write_table(table.drop_columns(["trial"]), paths[1])
    rows = finished_rows(paths, several_hosts=False)
    assert rows["trial"].to_pylist() == [3]
    (first, _), (second, why) = reasons(tmp_path, 3, rows.to_pandas())
    assert (first, second, why) == ("unreadable", "unreadable", "written by another version of this workflow")


def test_only_rows_from_the_host_of_the_newest_row_are_used(tmp_path: Path, write: Callable[..., Path]) -> None:
    paths = [write(1, hostname="old"), write(2, hostname="old"), write(3, hostname="new")]
    for age, path in enumerate(reversed(paths)):
        os.utime(path, (1000 - age, 1000 - age))
    rows = finished_rows(paths, several_hosts=False)
    assert rows["trial"].to_pylist() == [3]
    assert reasons(tmp_path, 3, rows.to_pandas()) == [("excluded", EXCLUDED)] * 2
    assert finished_rows(paths, several_hosts=True)["trial"].to_pylist() == [1, 2, 3]


def test_only_rows_under_the_newest_conditions_are_used(write: Callable[..., Path]) -> None:
    paths = [write(1, power_limit_w=700.0), write(2, power_limit_w=350.0), write(3, power_limit_w=350.0), write(4)]
    for age, path in enumerate(reversed(paths)):
        os.utime(path, (1000 - age, 1000 - age))
    assert finished_rows(paths, several_hosts=False)["trial"].to_pylist() == [2, 3, 4]


def test_rows_measured_with_another_key_are_excluded(tmp_path: Path, write: Callable[..., Path]) -> None:
    paths = [write(trial, plan_key=key) for trial, key in enumerate(("former", "planned", None), 1)]
    rows = finished_rows(paths, several_hosts=False, keys={"planned", "of another device"})
    assert rows["trial"].to_pylist() == [2, 3]
    assert reasons(tmp_path, 3, rows.to_pandas()) == [("excluded", EXCLUDED)]


def test_the_class_of_nodes_comes_from_the_path(tmp_path: Path, row: Row) -> None:
    paths = [
        tmp_path / "cells" / CELL.replace("/cpu", f"/{machine}/cpu") / "trial-1.parquet" for machine in ("a100", "h200")
    ]
    collected = pd.DataFrame([row(trial=1, size=4, device="cpu", machine="a100")])
    (result,) = missing_results({"trial": paths}, {"trial": collected})
    assert (result.kind, result.axes["machine"], result.axes["size"], result.axes["device"]) == (
        "missing",
        "h200",
        4,
        "cpu",
    )
    log = tmp_path / "logs" / "measure_cell" / CELL.replace("/cpu", "/h200/cpu") / "trial-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("error: no such node\n")
    (result,) = missing_results({"trial": paths}, {"trial": collected})
    assert (result.kind, result.reason) == ("failed", "no such node")

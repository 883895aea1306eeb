from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crossover.analysis.tables import read_row
from crossover.records import COLUMNS, Measurement, arrow_schema
from crossover.row_files import write_record


def test_a_row_survives_the_way_to_parquet_and_back(tmp_path: Path) -> None:
    row = Measurement(
        study='a "quoted" name, é, 漢字\n',
        size=2**53,
        flags=["drift", "noisy"],
        samples_s=[0.1 + 1e-17 * step for step in range(200_000)],  # longer than one block of the JSON reader
        status="ok",
    )
    path = tmp_path / "row.parquet"
    write_record(row, path)
    read = read_row(path)
    assert read.to_pylist() == [dataclasses.asdict(row)]
    assert read.schema.names == list(COLUMNS)
    assert read.schema.types == arrow_schema().types


def test_a_file_has_the_columns_that_are_not_null_and_is_readable_by_anyone(tmp_path: Path) -> None:
    write_record(Measurement(size=3, flags=[], samples_s=None), tmp_path / "row.parquet")
    (row,) = pq.read_table(tmp_path / "row.parquet").to_pylist()
    assert row == {"schema_version": Measurement.schema_version, "size": 3, "machine": "here", "flags": []}


def test_an_empty_list_is_not_a_null(tmp_path: Path) -> None:
    write_record(Measurement(flags=[], samples_s=None), tmp_path / "row.parquet")
    (row,) = read_row(tmp_path / "row.parquet").to_pylist()
    assert row["flags"] == []
    assert row["samples_s"] is None


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_record(Measurement(step_time_s=float("nan")), tmp_path / "row.parquet")
    assert list(tmp_path.iterdir()) == []

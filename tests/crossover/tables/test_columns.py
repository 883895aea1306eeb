"""Writing one row to its file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from crossover.tables.columns import COLUMNS, Measurement, write_record
from crossover.tables.run_tables import TABLES


def test_a_row_is_read_back_as_written(tmp_path: Path) -> None:
    row = Measurement(
        study='a "quoted" name, é, 漢字\n',
        size=2**53,
        flag_names=[],  # an empty list differs from null
        samples_s=[0.1 + 1e-17 * step for step in range(200_000)],  # longer than one block of the JSON reader
        status="ok",
    )
    path = tmp_path / "row.parquet"
    write_record(row, path)
    assert pq.read_table(path).to_pylist() == [dataclasses.asdict(row)]
    assert pq.read_schema(path).names == list(COLUMNS)


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_record(Measurement(step_time_s=float("nan")), tmp_path / "row.parquet")
    assert list(tmp_path.iterdir()) == []


def test_only_the_size_has_the_name_of_an_attribute_of_pandas() -> None:
    """mypy finds `cells.size`, an integer, where a column is meant; it takes `cells.flags` for a column."""
    assert {*COLUMNS}.union(*TABLES.values()) & {*dir(pd.DataFrame)} == {"size"}

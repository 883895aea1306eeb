from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.analysis.tables import collect_rows, read_table, write_rows, write_table
from crossover.errors import UserError
from crossover.records import Measurement, arrow_schema
from crossover.row_files import write_record


def written(folder: Path, **values: object) -> Path:
    path = folder / f"{'-'.join(map(str, values.values()))}.parquet"
    write_record(Measurement(study="s", **values), path)  # type: ignore[arg-type]
    return path


def test_rows_are_joined_in_the_order_of_cells_and_trials(tmp_path: Path) -> None:
    paths = [written(tmp_path, size=size, trial=trial) for size in (10, 9) for trial in (2, 1)]
    table = collect_rows(paths)
    assert list(zip(*(table[name].to_pylist() for name in ("size", "trial")), strict=True)) == [
        (9, 1),
        (9, 2),
        (10, 1),
        (10, 2),
    ]
    assert table.schema.names == arrow_schema().names


def test_all_null_columns_keep_their_type(tmp_path: Path) -> None:
    paths = [written(tmp_path, size=1, status="ok"), written(tmp_path, size=2, status="oom")]
    write_rows(collect_rows(paths), tmp_path / "all.parquet")
    assert pq.read_schema(tmp_path / "all.parquet").field("energy_per_step_j").type == pa.float64()
    assert read_table(tmp_path / "all.parquet")["status"].tolist() == ["ok", "oom"]


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "size=7"
    folder.mkdir()
    assert collect_rows([written(folder, size=1)])["size"].to_pylist() == [1]


def test_an_unreadable_row_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("half a file")
    with pytest.raises(UserError, match=r"broken\.parquet: not a readable row .*delete it and run again"):
        collect_rows([broken])


def test_a_row_of_another_version_is_named(tmp_path: Path) -> None:
    old = tmp_path / "old.parquet"
    write_record(Measurement(schema_version=0), old)
    with pytest.raises(UserError, match=r"old\.parquet: written by another version"):
        collect_rows([old])
    pq.write_table(pa.table({"size": [1]}), old)
    with pytest.raises(UserError, match=r"old\.parquet: written by another version"):
        collect_rows([old])


def test_a_table_is_written_for_machines_and_for_people(tmp_path: Path) -> None:
    table = pd.DataFrame({"size": [1, 2], "flags": [["drift", "quota"], []]})
    write_table(table, tmp_path / "t.parquet", tmp_path / "t.csv")
    assert [list(flags) for flags in read_table(tmp_path / "t.parquet")["flags"]] == [["drift", "quota"], []]
    assert (tmp_path / "t.csv").read_text() == "size,flags\n1,drift quota\n2,\n"


def test_a_row_of_a_run_without_machines_stays_valid(tmp_path: Path) -> None:
    path = written(tmp_path, size=1)
    pq.write_table(pq.read_table(path).drop_columns(["machine"]), path)
    assert collect_rows([path])["machine"].to_pylist() == ["here"]
    assert read_table(path)["machine"].tolist() == ["here"]

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.tables import registry
from crossover.tables.columns import Measurement, arrow_schema
from crossover.tables.frames import collect_rows, read_csv, read_table, records, write_table
from crossover.tables.registry import Column, table_of
from crossover.tables.rows import write_record


def written(folder: Path, **values: object) -> Path:
    path = folder / f"{'-'.join(map(str, values.values()))}.parquet"
    write_record(Measurement(study="s", **values), path)  # type: ignore[arg-type]
    return path


def test_rows_are_joined_in_the_order_of_cells_and_trials(tmp_path: Path) -> None:
    paths = [written(tmp_path, size=size, trial=trial) for size in (10, 9) for trial in (2, 1)]
    table = collect_rows(paths)
    assert (table["size"].to_pylist(), table["trial"].to_pylist()) == ([9, 9, 10, 10], [1, 2, 1, 2])
    assert table.schema == arrow_schema()  # also where all values of a column are missing


def test_later_trials_rest_on_the_first_where_rows_are_joined(tmp_path: Path) -> None:
    first = written(tmp_path, size=1, trial=1, status="invalid", answer="wrong", reason="it is off")
    rows = collect_rows([written(tmp_path, size=1, trial=2, status="ok"), first])
    assert rows["status"].to_pylist() == ["invalid", "invalid"]


def test_a_table_is_written_for_machines_and_for_people(tmp_path: Path) -> None:
    table = pd.DataFrame({"size": [1, 2], "flags": [["drift", "quota"], []]})
    write_table(table, {"size": {"doc": "neurons"}}, tmp_path / "t.parquet", tmp_path / "t.csv")
    assert [list(flags) for flags in read_table(tmp_path / "t.parquet")["flags"]] == [["drift", "quota"], []]
    assert (tmp_path / "t.csv").read_text() == "size,flags\n1,drift quota\n2,\n"
    assert pq.read_schema(tmp_path / "t.parquet").field("size").metadata == {b"doc": b"neurons"}


def test_a_row_of_a_run_without_machines_stays_valid(tmp_path: Path) -> None:
    path = written(tmp_path, size=1)
    pq.write_table(pq.read_table(path).drop_columns(["machine"]), path)
    assert collect_rows([path])["machine"].to_pylist() == ["here"]


def test_all_rows_that_cannot_be_used_are_named_at_once(tmp_path: Path) -> None:
    """Cut off, empty, of another version or with other columns, and of another type; by one process and by several."""
    good = [written(tmp_path, size=size) for size in range(600)]
    torn = [tmp_path / f"{name}.parquet" for name in ("cut", "empty", "old", "other", "typed")]
    cut, empty, old, other, typed = torn
    cut.write_bytes(good[0].read_bytes()[:-100])
    empty.touch()
    write_record(Measurement(schema_version=0), old)
    pq.write_table(pa.table({"size": [1]}), other)
    row = pq.read_table(good[0])
    pq.write_table(row.set_column(row.column_names.index("threads"), "threads", [["two"]]), typed)
    for processes in (1, 2):
        with pytest.raises(UserError, match="5 files like it cannot be used; delete them and run again: rm ") as caught:
            collect_rows([cut, *good, *torn[1:]], processes=processes)
        assert str(caught.value).startswith(f"{cut}: not a readable row (")
        assert str(caught.value).endswith(f"rm {' '.join(map(str, torn))}")


def test_a_table_in_the_place_of_another_is_named(tmp_path: Path) -> None:
    cells = pd.DataFrame({"study": ["a"], "size": [1]})
    write_table(cells, {}, tmp_path / "cells.parquet", tmp_path / "cells.csv")
    (tmp_path / "crossovers.parquet").write_bytes((tmp_path / "cells.parquet").read_bytes())
    with pytest.raises(UserError, match=r"crossovers\.parquet: not the table 'crossovers' of this version"):
        read_table(tmp_path / "crossovers.parquet")
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "claims.parquet")
    with pytest.raises(UserError, match=r"claims\.parquet: not the table 'claims' of this version .*; delete it and"):
        read_table(tmp_path / "claims.parquet")


@pytest.mark.parametrize(
    "change",
    [
        lambda columns: {name: columns[name] for name in list(columns)[1:]},
        lambda columns: columns | {"seconds_more": Column("another", "s")},
        lambda columns: columns | {"ratio": replace(columns["ratio"], dtype="string")},
        lambda columns: columns | {"ratio": replace(columns["ratio"], unit="%")},
    ],
)
def test_a_derived_table_with_other_columns_than_todays_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    path = tmp_path / "ratios.parquet"
    write_table(table_of("ratios"), {}, path, tmp_path / "ratios.csv")
    assert read_table(path).empty
    monkeypatch.setitem(registry.TABLES, "ratios", change(registry.TABLES["ratios"]))
    with pytest.raises(UserError, match=r"ratios\.parquet: not the table 'ratios' of this version"):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2,3,4\n1,2\n5,6,7,8,9\n", b"\xff\xfe\x00"])
def test_a_spoilt_csv_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^.*pairs\.csv: not a readable table \(.*\); delete it and run again$"):
        read_csv(path)


def test_records_are_plain_values() -> None:
    table = pd.DataFrame({"near": [np.array([1.0, 2.0]), None], "name": [None, "a"]})
    assert records(table) == [{"near": [1.0, 2.0], "name": None}, {"near": None, "name": "a"}]

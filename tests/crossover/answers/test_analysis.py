from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.answers.analysis import analyse
from crossover.errors import UserError
from crossover.tables.columns import arrow_schema
from crossover.tables.frames import records, write_rows
from crossover.tables.registry import TABLES
from crossover.tables.run_tables import DERIVED, TABLE_NAMES, RunTables, read_run, run_tables, write_run
from report_pages import study, tables_of

Row = Callable[..., dict[str, Any]]


def test_every_table_has_its_columns_documented() -> None:
    assert tuple(TABLES) == DERIVED
    for name, columns in TABLES.items():
        empty = getattr(run_tables(), name)
        assert empty.dtypes.astype(str).to_dict() == {column: known.dtype for column, known in columns.items()}
        for column, known in columns.items():
            assert known.doc, (name, column)
            assert set(known.interval or ()) <= set(columns), (name, column)


def tables(*rows: dict[str, Any], **studies: dict[str, Any]) -> RunTables:
    measurements = pd.DataFrame(rows) if rows else arrow_schema().empty_table().to_pandas()
    return tables_of(measurements, studies, prices={"cpu": 1.0})


def test_a_run_is_written_and_read_as_a_whole(tmp_path: Path, row: Row) -> None:
    one = tables(row(size=2), row(size=2, device="cuda", flags=["drift"]))
    write_run(one, tmp_path)
    with pytest.raises(UserError, match=r"measurements\.parquet"):
        read_run(tmp_path)
    write_rows(arrow_schema().empty_table(), tmp_path / "measurements.parquet")
    read = read_run(tmp_path)
    for name in DERIVED:
        found, made = getattr(read, name), getattr(one, name)
        assert found.dtypes.to_dict() == made.dtypes.to_dict(), name
        assert found.map(str).equals(made.map(str)), name
        assert (tmp_path / f"{name}.csv").is_file()


def test_a_run_of_which_nothing_has_finished_has_empty_tables() -> None:
    assert {name: len(getattr(tables(), name)) for name in TABLE_NAMES} == dict.fromkeys(TABLE_NAMES, 0)


def test_the_tables_of_one_study_hold_its_rows_alone(row: Row) -> None:
    rows = [row(study=study, device=device) for study in ("one", "other") for device in ("cpu", "cuda")]
    own = tables(*rows).of_study("other")
    for name in ("measurements", "cells", "ratios", "crossovers"):
        assert set(getattr(own, name)["study"]) == {"other"}, name
    assert list(own.claims.columns) == list(TABLES["claims"])


def test_a_studys_file_says_what_counts(row: Row) -> None:
    """Sizes beyond the file's were refined; crossovers are over its axis; cores count where the CPU ran on fewer."""
    rows = [row(size=size, device=device) for size in (2, 3) for device in ("cpu", "cpu-1", "cuda")]
    others = [row(study="other", size=2, device=device) for device in ("cpu", "cuda")]
    own = study(sizes=[2], x_axis="parameters")
    found = tables(*rows, *others, disc_depth=own, other=study())
    refined = {(cell["study"], cell["size"]): cell["refined"] for cell in records(found.cells)}
    assert refined == {("disc_depth", 2): False, ("disc_depth", 3): True, ("other", 2): False}
    assert found.crossovers.groupby("study")["x_axis"].first().to_dict() == {
        "disc_depth": "parameters",
        "other": "size",
    }
    assert set(found.cores_worth["study"]) == {"disc_depth"}
    assert found.cells["price_per_million_steps"].notna().sum() == 5
    elsewhere = analyse(
        pd.DataFrame(rows), found.quality, found.largest_batches, {"disc_depth": own}, None, grids_known=False
    )
    assert not elsewhere.cells["refined"].any()

"""Tables read and written: rows of trials in, one Parquet file (and a CSV to look at) out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.errors import UserError
from crossover.files import atomic_path
from crossover.records import AXES, HERE, Measurement, arrow_schema, threads_of_side

CELL_AXES = list(AXES)
LINE_AXES = [axis for axis in AXES if axis not in ("size", "device")]
"""The axes that a line of a figure, and a crossover, keeps fixed."""
DEVICE_LINE_AXES = [*LINE_AXES, "device"]
"""The same of one device's line, of which there is a cost model."""


ROWS_AT_ONCE = 500
"""One-row tables take up far more memory than the rows of one; so many are joined before more are read."""


def reading_processes() -> int:
    """Processes that read rows where nothing is measured beside them, whatever --cores says."""
    return min(4, os.cpu_count() or 1)


def collect_rows(
    paths: Sequence[Path], record: type[Any] = Measurement, number: str = "trial", processes: int = 1
) -> pa.Table:
    """Join rows of trials (or of another record), ordered by cell and trial (or by what numbers a cell's rows).

    Raises UserError naming an unreadable or outdated file.
    """
    read = partial(_rows, record=record)
    parts = _parts(paths)
    if processes == 1 or len(parts) < 2:
        return joined([read(part) for part in parts], record, number)
    with ProcessPoolExecutor(min(processes, len(parts))) as pool:
        return joined(list(pool.map(read, parts)), record, number)


def readable_rows(paths: Sequence[Path], record: type[Any] = Measurement) -> tuple[list[Path], pa.Table]:
    """The rows that can be read, in one table, and their files in the same order; the others are left out."""
    names = arrow_schema(record).names
    found: list[Path] = []
    tables = []
    for part in _parts(paths):
        rows = {}
        for path in part:
            with suppress(UserError):
                rows[path] = _row(path, names, record.schema_version)
        if rows:
            found += rows
            tables.append(_joint(list(rows.values()), names))
    return found, pa.concat_tables(tables) if tables else arrow_schema(record).empty_table()


def joined(rows: Sequence[pa.Table], record: type[Any] = Measurement, number: str = "trial") -> pa.Table:
    """Rows in one table, ordered by cell and number; one without rows where there are none."""
    schema, order = arrow_schema(record), [(axis, "ascending") for axis in (*AXES, number)]
    return pa.concat_tables(rows).cast(schema).sort_by(order) if rows else schema.empty_table()


def read_row(path: Path, record: type[Any] = Measurement) -> pa.Table:
    """The row in a file; raises UserError where it is unreadable or outdated."""
    return _rows([path], record)


def _parts(paths: Sequence[Path]) -> list[Sequence[Path]]:
    return [paths[start : start + ROWS_AT_ONCE] for start in range(0, len(paths), ROWS_AT_ONCE)]


def _rows(paths: Sequence[Path], record: type[Any]) -> pa.Table:
    names = arrow_schema(record).names
    return _joint([_row(path, names, record.schema_version) for path in paths], names)


def _joint(rows: Sequence[pa.Table], columns: list[str]) -> pa.Table:
    return with_machine(pa.concat_tables(rows)).select(columns).combine_chunks()


def _row(path: Path, columns: list[str], version: int) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            row = file.read(use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable row ({str(error).splitlines()[0]}); delete it and run again") from None
    if "machine" not in row.column_names:
        row = with_machine(row)
    names = row.column_names
    if set(names) != set(columns) or row["schema_version"].to_pylist() != [version]:
        raise UserError(f"{path}: written by another version of this workflow; delete it and run again")
    return row if names == columns else row.select(columns)


def with_machine(rows: pa.Table) -> pa.Table:
    """The rows with column `machine`, which those of earlier versions lack, as do those made elsewhere."""
    if "machine" in rows.column_names:
        place = rows.column_names.index("machine")
        return rows.set_column(place, "machine", rows["machine"].cast(pa.string()).fill_null(HERE))
    return rows.append_column("machine", pa.array([HERE] * rows.num_rows, pa.string()))


def write_rows(table: pa.Table, path: Path) -> None:
    """Write an Arrow table as Parquet, atomically."""
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)


def read_table(path: Path) -> pd.DataFrame:
    """Read a Parquet file that this workflow wrote; a table by cells or lines gets column `machine` if it lacks it."""
    table = pd.read_parquet(path)
    return table if "machine" in table or "study" not in table else table.assign(machine=HERE)


def of_study(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """The rows of one study."""
    return table[table["study"] == study]


def with_ok_times(measurements: pd.DataFrame) -> pd.DataFrame:
    """The rows of all trials, without the times of those whose status is not ok: these must not count anywhere."""
    return measurements.assign(step_time_s=measurements["step_time_s"].where(measurements["status"] == "ok"))


def at_common_sizes(trials: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The rows at sizes that were asked of every value of an axis.

    A size that refinement added for the sake of one device, or one precision, is none that the others lack.
    """
    return trials[trials.groupby("size")[axis].transform("nunique") == trials[axis].nunique()]


def on_all_cores(table: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of the CPU on fewer cores: what every comparison means that does not name them."""
    return table.loc[np.array([threads_of_side(str(device)) is None for device in table["device"]], dtype=bool)]


def rows_with(table: pd.DataFrame, axes: list[str], values: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a table that have a row's values on these axes."""
    return table[(table[axes] == pd.Series(dict(values))[axes]).all(axis=1)]


def device_name_of(rows: pd.DataFrame) -> str | None:
    """The name of the device that ran; None where no row knows it, or where machines have several."""
    names = rows["device_name"].dropna().unique()
    return str(names[0]) if len(names) == 1 else None


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain dictionaries; a missing value is None."""
    return [
        {str(key): None if pd.api.types.is_scalar(value) and pd.isna(value) else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]


def first_row(table: pd.DataFrame) -> dict[str, Any]:
    """The first row as a plain dictionary; a missing value is None."""
    return records(table.head(1))[0]


def write_table(table: pd.DataFrame, path_to_parquet: Path, path_to_csv: Path) -> None:
    """Write a table as Parquet and as CSV, atomically; see `write_csv` for the latter."""
    with atomic_path(path_to_parquet) as temporary:
        table.to_parquet(temporary, index=False)
    write_csv(table, path_to_csv)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, atomically; lists become words separated by spaces."""
    flat = table.map(lambda value: " ".join(map(str, value)) if isinstance(value, list) else value)
    with atomic_path(path) as temporary:
        flat.to_csv(temporary, index=False)

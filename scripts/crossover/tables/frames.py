"""Tables read and written: rows of trials in, one Parquet file (and a CSV to look at) out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from crossover.config.words import AXES, BASELINE, HERE, threads_of_side
from crossover.files import atomic_path
from crossover.reading import UnreadableError, check_readable, read_arrow, read_each
from crossover.tables.columns import COLUMNS, SCHEMA_VERSION, Measurement, Row, arrow_schema
from crossover.tables.first_trials import resting_on_first
from crossover.tables.registry import LINE_AXES, TABLES
from crossover.tables.repeats import least_disturbed

DEVICE_LINE_AXES = [*LINE_AXES, "device"]
"""The columns that name one device's line."""

ROWS_AT_ONCE = 500
"""One-row tables take up far more memory than the rows of one; so many are joined before more are read."""


def reading_processes() -> int:
    """Processes that read rows where nothing is measured beside them, whatever --cores says."""
    return min(4, os.cpu_count() or 1)


def collect_rows(paths: Sequence[Path], record: type[Row] = Measurement, processes: int = 1) -> pa.Table:
    """Join rows of trials (or of trainings), ordered by cell and number.

    Raises UserError naming all files that are unreadable or outdated.
    """
    read = partial(_part, record=record)
    parts = _parts(paths)
    if processes == 1 or len(parts) < 2:
        found = list(map(read, parts))
    else:
        with ProcessPoolExecutor(min(processes, len(parts))) as pool:
            found = list(pool.map(read, parts))
    check_readable({path: error for _, torn in found for path, error in torn.items()})
    return joined([rows for rows, _ in found], record)


def readable_rows(paths: Sequence[Path], record: type[Row]) -> pa.Table:
    """The rows that can be read, in the order of their files; the others are left out."""
    tables = [_part(part, record)[0] for part in _parts(paths)]
    return pa.concat_tables([arrow_schema(record).empty_table(), *tables])


def joined(rows: Sequence[pa.Table], record: type[Row]) -> pa.Table:
    """Rows in one table, ordered by cell and number; empty where there are none.

    Of a trial that was measured again one row counts, and later trials count as the first allows.
    """
    schema, order = arrow_schema(record), [(axis, "ascending") for axis in (*AXES, record.number)]
    table = pa.concat_tables(rows).cast(schema).sort_by(order) if rows else schema.empty_table()
    return resting_on_first(least_disturbed(table)) if record is Measurement else table


def read_row(path: Path, record: type[Row] = Measurement) -> pa.Table:
    """The row in a file; raises UserError where it is unreadable or outdated."""
    row, torn = _part([path], record)
    check_readable(torn)
    return row


def _parts(paths: Sequence[Path]) -> list[Sequence[Path]]:
    return [paths[start : start + ROWS_AT_ONCE] for start in range(0, len(paths), ROWS_AT_ONCE)]


def _part(paths: Sequence[Path], record: type[Row]) -> tuple[pa.Table, dict[Path, UnreadableError]]:
    """The rows that can be read, and why the other files cannot."""
    schema = arrow_schema(record)
    rows, torn = read_each(paths, partial(_row, schema=schema, version=record.schema_version))
    table = pa.concat_tables([schema.empty_table(), *rows.values()])
    return table.combine_chunks(), torn


def _row(path: Path, schema: pa.Schema, version: int) -> pa.Table:
    row = read_arrow(path, "row")
    try:
        row = with_machine(row)
        if set(row.column_names) != set(schema.names) or row["schema_version"].to_pylist() != [version]:
            raise UnreadableError(path, "written by another version of this workflow")
        row = row.select(schema.names)
        return row if row.schema.equals(schema) else row.cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise UnreadableError(path, f"not a readable row ({str(error).splitlines()[0]})") from None


def with_machine(rows: pa.Table) -> pa.Table:
    """The rows with column `machine`, which those of earlier versions lack, as do those made elsewhere."""
    if "machine" in rows.column_names:
        place = rows.column_names.index("machine")
        return rows.set_column(place, "machine", rows["machine"].cast(pa.string()).fill_null(HERE))
    return rows.append_column("machine", pa.array([HERE] * rows.num_rows, pa.string()))


MARK = b"crossover"
"""The key of a table's metadata that says which table it is, and of which version."""


def write_rows(table: pa.Table, path: Path) -> None:
    """Write an Arrow table as Parquet, atomically; the file says which table it is."""
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: _mark(path)})
    with atomic_path(path) as temporary:
        pq.write_table(marked, temporary)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that this version of the workflow wrote.

    Raises UserError where the file is unreadable, or another table, or of another version.
    """
    table = read_arrow(path, "table")
    if (table.schema.metadata or {}).get(MARK) != _mark(path):
        raise UnreadableError(path, f"not the table '{path.stem}' of this version of the workflow")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def read_trials(path: Path, needed: Sequence[str], remedy: str, others: Sequence[str] = COLUMNS) -> pa.Table:
    """Trials of any version: the needed columns, and those of `others` that the file has, with today's types.

    Raises UserError, which ends with the remedy, where the file is unreadable or lacks a needed column.
    """
    found = read_arrow(path, "table", [*needed, *others], remedy)
    for name in needed:
        if name not in found.column_names:
            raise UnreadableError(path, f"column '{name}' is missing", remedy)
    schema = arrow_schema()
    try:
        return with_machine(found.cast(pa.schema([schema.field(name) for name in found.column_names])))
    except (pa.ArrowException, ValueError) as error:
        raise UnreadableError(path, f"not rows of trials ({str(error).splitlines()[0]})", remedy) from None


def _mark(path: Path) -> bytes:
    """Name and version of a table, and of a derived one a digest of its columns with their types and units."""
    columns = [(name, column.dtype, column.unit) for name, column in TABLES.get(path.stem, {}).items()]
    digest = f" {hashlib.sha256(repr(columns).encode()).hexdigest()[:16]}" if columns else ""
    return f"{path.stem} {SCHEMA_VERSION}{digest}".encode()


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file that this workflow wrote; raises UserError where it is unreadable."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UnreadableError(path, f"not a readable table ({str(error).splitlines()[0]})") from None


def of_study(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """The rows of one study."""
    return table[table["study"] == study]


def with_ok_times(measurements: pd.DataFrame) -> pd.DataFrame:
    """The rows of all trials, without the times of those whose status is not ok: these must not count anywhere."""
    return measurements.assign(step_time_s=measurements["step_time_s"].where(measurements["status"] == "ok"))


def at_common_sizes(trials: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The rows at sizes measured for every value of an axis; refinement may add a size for one device only."""
    return trials[trials.groupby("size")[axis].transform("nunique") == trials[axis].nunique()]


def on_all_cores(table: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of the CPU on fewer cores: what every comparison means that does not name them."""
    return table.loc[np.array([threads_of_side(str(device)) is None for device in table["device"]], dtype=bool)]


def rows_with(table: pd.DataFrame, axes: list[str], values: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a table that have a row's values on these axes."""
    return table[(table[axes] == pd.Series(dict(values))[axes]).all(axis=1)]


def headline_rows(crossovers: pd.DataFrame) -> pd.DataFrame:
    """The rows of the main question: each accelerator's time against all cores of the CPU beside it."""
    return crossovers[
        (crossovers["pair"] == "device")
        & (crossovers["cost"] == "time")
        & (crossovers["baseline"] == BASELINE)
        & (crossovers["baseline_machine"] == crossovers["machine"])
    ]


def device_name_of(rows: pd.DataFrame) -> str | None:
    """The name of the device that ran; None where no row knows it, or where machines have several."""
    names = rows["device_name"].dropna().unique()
    return str(names[0]) if len(names) == 1 else None


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain dictionaries; a missing value is None, an array is a list."""
    # Column by column: pandas' own way takes ten times as long for a few rows of a hundred columns.
    columns = {str(name): [_plain(value) for value in column.array] for name, column in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return None if value is None or value is pd.NA or value is pd.NaT or value != value else value


def first_row(table: pd.DataFrame) -> dict[str, Any]:
    """The first row as a plain dictionary; a missing value is None."""
    return records(table.head(1))[0]


def write_table(
    table: pd.DataFrame, columns: Mapping[str, Mapping[str, str]], path_to_parquet: Path, path_to_csv: Path
) -> None:
    """Write a table as Parquet, with each column's metadata, and as CSV, atomically; see `write_csv` for the latter."""
    rows = pa.Table.from_pandas(table, preserve_index=False)
    schema = pa.schema([field.with_metadata(columns.get(field.name)) for field in rows.schema], rows.schema.metadata)
    write_rows(rows.cast(schema), path_to_parquet)
    write_csv(table, path_to_csv)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, atomically; lists become words separated by spaces."""
    flat = table.map(lambda value: " ".join(map(str, value)) if isinstance(value, list) else value)
    with atomic_path(path) as temporary:
        flat.to_csv(temporary, index=False)

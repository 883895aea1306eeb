"""Tables as data frames: reading, writing as Parquet and CSV, selecting rows."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.extensions import ExtensionArray

from crossover.config.study import Study
from crossover.config.words import BASELINE, CPU_THREADS, is_cpu, threads_of_side
from crossover.config.workloads import OWN
from crossover.files import atomic_path
from crossover.reading import RUN_AGAIN, UnreadableError, read_arrow
from crossover.tables.columns import SCHEMA_VERSION
from crossover.tables.registry import CELL_AXES, SERIES_AXES
from crossover.tables.run_tables import CELLS_OF, TABLE_NAMES, TABLES, RunTables, table_of

SERIES_AND_DEVICE = [*SERIES_AXES, "device"]

LISTED = ("variant", "protocol", "batch_size", "precision", "execution")
"""The axes whose values a study lists, under the axis's name in the plural."""

VERSION_KEY = b"crossover"


def write_rows(table: pa.Table, path: Path) -> None:
    """Write an Arrow table as Parquet, atomically, with its name and version in the metadata."""
    metadata = {**(table.schema.metadata or {}), VERSION_KEY: _version(path)}
    with atomic_path(path) as temporary:
        pq.write_table(table.replace_schema_metadata(metadata), temporary)


def read_table(path: Path) -> pd.DataFrame:
    """`read_arrow_table` as a data frame."""
    frame: pd.DataFrame = read_arrow_table(path).to_pandas()
    return frame


def read_arrow_table(path: Path, remedy: str = RUN_AGAIN) -> pa.Table:
    """Read a table written by this version of the workflow.

    Raises UserError with the remedy if the file is unreadable or contains another table or version.
    """
    table = read_arrow(path, "table", remedy=remedy)
    if (table.schema.metadata or {}).get(VERSION_KEY) != _version(path):
        raise UnreadableError(path, f"not the table '{path.stem}' of this version of the workflow", remedy)
    return table


def _version(path: Path) -> bytes:
    columns = [(name, column.dtype, column.unit) for name, column in TABLES.get(path.stem, {}).items()]
    digest = f" {hashlib.sha256(repr(columns).encode()).hexdigest()[:16]}" if columns else ""
    return f"{path.stem} {SCHEMA_VERSION}{digest}".encode()


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file written by this workflow; raises UnreadableError."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UnreadableError(path, f"not a readable table ({str(error).splitlines()[0]})") from None


def of_study(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """The rows of one study."""
    return table[table["study"] == study]


def with_ok_times(measurements: pd.DataFrame) -> pd.DataFrame:
    """All trials, with a step time only for those whose status is ok."""
    return measurements.assign(step_time_s=measurements["step_time_s"].where(measurements["status"] == "ok"))


def at_common_points(trials: pd.DataFrame, axis: str, along: str = "size") -> pd.DataFrame:
    """The trials at points measured for all values of an axis, since refinement may add a size for one device only."""
    values, points = trials[axis].tolist(), trials[along].tolist()
    values_at: dict[Any, set[Any]] = {}
    for value, point in zip(values, points, strict=True):
        values_at.setdefault(point, set()).add(value)
    number = len(set(values))
    return trials[np.array([len(values_at[point]) == number for point in points], dtype=bool)]


def on_all_cores(table: pd.DataFrame) -> pd.DataFrame:
    """The rows except those of the CPU on fewer cores."""
    return table.loc[np.array([threads_of_side(str(device)) is None for device in table["device"]], dtype=bool)]


def rows_with(table: pd.DataFrame, axes: list[str], values: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a table that have the given values on these axes."""
    positions = np.arange(len(table))
    for axis in axes:
        # Only in the rows left by the axes before. A comparison with a missing value is NA, and leaves the row.
        same = table[axis].array[positions] == values[axis]
        if isinstance(same, ExtensionArray):
            same = same.to_numpy(bool, na_value=True)
        positions = positions[np.asarray(same, dtype=bool)]
    return table.iloc[positions]


def headline_rows(crossovers: pd.DataFrame, *, second: bool = False) -> pd.DataFrame:
    """Crossovers in time between accelerators and all CPU cores of the same machine.

    With `second`, they are those over the study's second axis.
    """
    return crossovers[
        (crossovers["pair"] == "device")
        & (crossovers["cost"] == "time")
        & (crossovers["baseline"] == BASELINE)
        & (crossovers["second_axis"] == second)
        & (crossovers["baseline_machine"] == crossovers["machine"])
    ]


def with_cell_columns(
    cells: pd.DataFrame, columns: Mapping[tuple[Any, ...], Mapping[str, Any]], names: Collection[str]
) -> pd.DataFrame:
    """Add the columns `names` to cells, with values from `columns`, which maps a cell's axes to values by column."""
    keys = [tuple(cell.values()) for cell in records(cells[CELL_AXES])]
    rows = [columns.get(key, {}) for key in keys]
    values = {name: pd.Series([row.get(name) for row in rows], cells.index, dtype=object) for name in names}
    return table_of("cells", cells.assign(**values))


def device_name_of(names: Iterable[Any]) -> str | None:
    """The name of a device, from those in its rows; None if no row has one, or if the names differ."""
    known = {name for name in names if isinstance(name, str)}
    return known.pop() if len(known) == 1 else None


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain dictionaries; a missing value is None, an array is a list."""
    # For a few rows of a hundred columns, pandas' to_dict takes ten times as long.
    columns = {str(name): [_plain(value) for value in column.array] for name, column in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return None if value is None or value is pd.NA or value is pd.NaT or value != value else value


def first_row(table: pd.DataFrame) -> dict[str, Any]:
    """The first row as a plain dictionary; a missing value is None."""
    return records(table.head(1))[0]


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a derived table as Parquet, with each column's doc and unit as metadata, and beside it as CSV."""
    rows = pa.Table.from_pandas(table, preserve_index=False)
    columns = {name: {"doc": column.doc, "unit": column.unit} for name, column in TABLES[path.stem].items()}
    schema = pa.schema([field.with_metadata(columns[field.name]) for field in rows.schema], rows.schema.metadata)
    write_rows(rows.cast(schema), path)
    write_csv(table, path.with_suffix(".csv"))


def read_run(folder: Path) -> RunTables:
    """Read the tables of a finished run; raises UserError for a file that is missing or damaged."""
    tables = {name: read_table(folder / f"{name}.parquet") for name in TABLE_NAMES}
    cells = tables["cells"]
    for origin, name in CELLS_OF.items():
        tables[name] = cells[cells["origin"] == origin].reset_index(drop=True)
    return RunTables(**tables)


def write_run(tables: RunTables, folder: Path) -> None:
    """Write the derived tables to a results folder, as Parquet and CSV; `write_rows` writes the measurements."""
    for name in TABLES:
        parts = [getattr(tables, part) for part in (CELLS_OF.values() if name == "cells" else (name,))]
        write_table(pd.concat(parts, ignore_index=True), folder / f"{name}.parquet")


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, atomically; lists become words separated by spaces."""
    flat = table.map(lambda value: " ".join(map(str, value)) if isinstance(value, list) else value)
    with atomic_path(path) as temporary:
        flat.to_csv(temporary, index=False)


def with_x(rows: pd.DataFrame, x_axis: str) -> pd.DataFrame:
    """Trials, cells or ratios with column `x`, their position on an x axis."""
    if x_axis != CPU_THREADS:
        return rows.assign(x=pd.to_numeric(rows[x_axis]).astype(float))
    if "baseline_threads" in rows:
        return rows.assign(x=rows["baseline_threads"].astype(float))
    return rows.assign(x=pd.to_numeric(rows["threads"]).astype(float).where(rows["device"].map(is_cpu).astype(bool)))


def with_parameters(rows: pd.DataFrame) -> pd.DataFrame:
    """Fill in the number of parameters of trials that ended before their model was built."""
    of_model = rows.groupby(["study", "variant", "size"])["parameters"].transform("first")
    return rows.assign(parameters=rows["parameters"].fillna(of_model))


def x_axes_of(requested: Mapping[str, str], rows: pd.DataFrame) -> dict[str, str]:
    """The x axis of each study: as requested, or the size if the number of parameters does not distinguish sizes."""
    return {study: _x_axis(axis, of_study(rows, study)) for study, axis in requested.items()}


def with_x_axes(studies: Mapping[str, Study], rows: pd.DataFrame) -> dict[str, Study]:
    """The studies, with the x axes that `x_axes_of` returns."""
    axes = x_axes_of({name: study.x_axis for name, study in studies.items()}, rows)
    return {name: replace(study, x_axis=axes[name]) for name, study in studies.items()}


WORK = ("parameters", "flops_per_step", "products_bytes_by_working_set", "others_bytes_by_working_set")
"""Columns of `measurements` with a step's work, counted in a cell's first trial."""


def studies_with_idle_size(measurements: pd.DataFrame) -> set[str]:
    """The studies of a user's model in which every size has the same parameters and operations."""
    of_models = measurements[measurements["workload"] == OWN]
    return {str(study) for study, rows in of_models.groupby("study", sort=False) if _is_size_idle(rows)}


def _is_size_idle(rows: pd.DataFrame) -> bool:
    counted = rows.dropna(subset=list(WORK[2:]))
    sizes = counted["size"].unique()
    if len(sizes) < 2 or {*rows["size"]} > {*sizes}:
        return False
    work = counted[list(WORK)].map(lambda value: tuple(value) if np.ndim(value) else value)
    work = work.astype(object).where(work.notna(), None)
    of_cells = work.apply(tuple, axis=1).groupby([counted[axis] for axis in SERIES_AND_DEVICE])
    return bool((of_cells.nunique() == 1).all())


def _x_axis(requested: str, rows: pd.DataFrame) -> str:
    if requested != "parameters" or rows.empty:
        return requested
    counted = rows.dropna(subset="parameters")
    if set(rows["size"]) > set(counted["size"]):  # not counted for functions and for models that could not be built
        return "size"
    values = counted.groupby(SERIES_AXES)[["size", "parameters"]].nunique()
    distinct = (counted["parameters"] > 0).all() and (values["size"] == values["parameters"]).all()
    return "parameters" if distinct else "size"


def in_study_order(trials: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The trials of each study in the order of the values that it lists; other values, as of candidates, come last."""
    keys = [pd.factorize(trials["study"])[0]]
    for axis in LISTED:
        values = {name: getattr(study, f"{axis}s") for name, study in studies.items()}
        ranks = {(name, value): rank for name in values for rank, value in enumerate(values[name])}
        keys.append(np.array([ranks.get(key, len(ranks)) for key in zip(trials["study"], trials[axis], strict=True)]))
    return trials.iloc[np.lexsort(keys[::-1])].reset_index(drop=True)

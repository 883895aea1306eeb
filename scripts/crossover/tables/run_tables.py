"""The tables of a run: their names, columns and rows.

Rules import the names, so pandas is imported only to make a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from crossover.config.words import is_cpu
from crossover.tables import registry
from crossover.tables.columns import COLUMNS
from crossover.tables.registry import Column

if TYPE_CHECKING:
    import pandas as pd


def _table(columns: Mapping[str, Column], doc: str) -> Any:
    """A table with its columns; `doc` describes a row."""
    return field(metadata={"columns": columns, "doc": doc})


@dataclass(frozen=True)
class RunTables:
    """The tables of a run, one file each, in the order in which they are made.

    The fields `cells` and `*_cells` are parts of one file, cells.parquet.
    """

    measurements: pd.DataFrame = _table({}, "a trial")
    roofs: pd.DataFrame = _table(registry.ROOFS, "a roof of a device")
    cells: pd.DataFrame = _table(
        registry.CELLS,
        "a cell: a summary of its trials, its bottleneck, its comparison with other candidates, or its largest batch",
    )
    candidate_cells: pd.DataFrame = field(kw_only=True)
    reference_cells: pd.DataFrame = field(kw_only=True)
    predicted_cells: pd.DataFrame = field(kw_only=True)
    searched_cells: pd.DataFrame = field(kw_only=True)
    ratios: pd.DataFrame = _table(registry.RATIOS, "a pair of cells: the speed-up of one over the other")
    crossovers: pd.DataFrame = _table(registry.CROSSOVERS, "a series, pair of sides and cost, with their crossover")
    machines: pd.DataFrame = _table(registry.MACHINES, "a device of a machine, ranked at a point of its series")
    latencies: pd.DataFrame = _table(registry.LATENCIES, "a cell and method to measure its latency")
    quality: pd.DataFrame = _table(
        registry.QUALITY, "a training, with the differences of its cell's models from the CPU's in fp32"
    )
    claims: pd.DataFrame = _table(registry.CLAIMS, "a claim and machine, with the verdict")
    answers: pd.DataFrame = _table(registry.ANSWERS, "an answer")
    means: Any = field(default_factory=dict, kw_only=True)
    """The result of `crossover.compare.cells.means_of`, for all cells; empty in tables that were read from files."""

    @property
    def cells_elsewhere(self) -> pd.DataFrame:
        """The cells that figures show of accelerators measured elsewhere: as predicted beside this CPU or, with an
        accelerator here, as measured.
        """
        of_cpus = self.reference_cells["device"].map(is_cpu).astype(bool)
        return self.predicted_cells if len(self.predicted_cells) else self.reference_cells[~of_cpus]

    def of_study(self, study: str) -> RunTables:
        """The tables with the rows of one study, and all roofs."""
        names = [entry.name for entry in fields(self) if entry.name not in ("roofs", "means")]
        return replace(self, **{name: (rows := getattr(self, name))[rows["study"] == study] for name in names})

    def rows_with(self, name: str, axes: Sequence[str], values: Mapping[str, Any]) -> pd.DataFrame:
        """The rows of a table that have the given values on these axes, leaving out axes without a value.

        Each choice of axes groups the table once, so that an answer on each series does not search all rows.
        """
        table: pd.DataFrame = getattr(self, name)
        known = tuple(axis for axis in axes if values[axis] is not None)
        if (name, known) not in self._groups:
            groups: dict[tuple[Any, ...], list[int]] = {}
            keys = zip(*(table[axis].tolist() for axis in known), strict=True) if known else [()] * len(table)
            for position, key in enumerate(keys):
                groups.setdefault(key, []).append(position)
            self._groups[name, known] = groups
        return table.iloc[self._groups[name, known].get(tuple(values[axis] for axis in known), [])]

    @cached_property
    def _groups(self) -> dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], list[int]]]:
        """Positions of rows by table and axes, then by values."""
        return {}


CELLS_OF = {
    "study": "cells",
    "candidates": "candidate_cells",
    "reference": "reference_cells",
    "predicted": "predicted_cells",
    "search": "searched_cells",
}
"""The field of RunTables with the cells of each origin."""
_ENTRIES = [entry for entry in fields(RunTables) if entry.metadata]
ROWS_OF: Mapping[str, str] = {entry.name: entry.metadata["doc"] for entry in _ENTRIES}
"""What a row of each table is, by the table's name."""
TABLE_NAMES = tuple(ROWS_OF)
REPORT_FILES = {
    "report": "report.html",
    "markdown": "summary.md",
    "closing": "summary.txt",  # printed at the end of a run
    "provenance": "provenance.json",
    "thresholds": "thresholds.json",
    "checksums": "SHA256SUMS",
}
"""The files that `write_report` writes beside the tables, by the names of its rule's outputs."""
TABLES: Mapping[str, Mapping[str, Column]] = {entry.name: entry.metadata["columns"] for entry in _ENTRIES[1:]}
"""The columns of each derived table, by its name; those of measurements are in `crossover.tables.columns`."""


def table_of(table: str, rows: Iterable[Mapping[str, Any]] | pd.DataFrame = ()) -> pd.DataFrame:
    """A derived table with all its columns and types, from rows or from a table with more columns.

    Raises KeyError for an unknown column in a row.
    """
    import pandas as pd

    columns = TABLES[table]
    if isinstance(rows, pd.DataFrame):
        rows = rows.reindex(columns=list(columns))
        dtypes = rows.dtypes.astype(str)
        # A conversion costs 0.1 ms even if it changes nothing, and cells have a hundred columns.
        others = {name: column.dtype for name, column in columns.items() if dtypes[name] != column.dtype}
        converted = rows[list(others)].astype(others)
        return rows.assign(**{name: converted[name] for name in others})
    rows = list(rows)
    if not rows:
        return _empty_table(table).copy()
    if unknown := {name for row in rows for name in row} - columns.keys():
        raise KeyError(f"table {table} has no column {', '.join(sorted(unknown))}")
    return _typed(table, rows)


def _typed(table: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    columns = TABLES[table].items()
    return pd.DataFrame({name: _array([row.get(name) for row in rows], column.dtype) for name, column in columns})


def _array(values: Sequence[Any], dtype: Any) -> Any:
    import numpy as np
    import pandas as pd

    objects = np.empty(len(values), dtype=object)
    objects[:] = values  # np.array would make a matrix of lists of the same length
    return objects if dtype == "object" else pd.array(objects, dtype=dtype)


@cache
def _empty_table(table: str) -> pd.DataFrame:
    return _typed(table, ())


def run_tables(**tables: Any) -> RunTables:
    """The tables of a run; tables that are not given have columns but no rows."""
    import pandas as pd

    empty = {"measurements": pd.DataFrame(columns=list(COLUMNS))} | {name: table_of(name) for name in TABLES}
    empty |= {name: table_of("cells") for name in CELLS_OF.values()}
    return RunTables(**(empty | tables))

"""All tables of a run, as one value that is read and written as a whole."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import pandas as pd

from crossover.tables.columns import COLUMNS
from crossover.tables.frames import of_study, read_table, write_table
from crossover.tables.registry import TABLES, table_of


@dataclass(frozen=True)
class RunTables:
    """The tables of a run, one file each; a table that no study asks for is empty, with its columns."""

    measurements: pd.DataFrame
    """One row a trial."""
    roofs: pd.DataFrame
    """One row a roof of a device."""
    cells: pd.DataFrame
    """One row a cell: its trials summarised."""
    bottlenecks: pd.DataFrame
    """One row a cell whose remedies were tried: what bounds its step."""
    ratios: pd.DataFrame
    """One row a pair of cells: how many times as fast one is as the other."""
    crossovers: pd.DataFrame
    """One row a line, pair of sides and cost: where they cross."""
    best_ways: pd.DataFrame
    """One row a way of a device at a size, of studies that have `ways`."""
    latencies: pd.DataFrame
    """One row a cell and way to measure its latency."""
    cores_worth: pd.DataFrame
    """One row a line, size and accelerator: how many CPU cores it is worth."""
    quality: pd.DataFrame
    """One row a training."""
    quality_pairs: pd.DataFrame
    """One row a cell and metric: how its models differ from the CPU's in fp32."""
    references: pd.DataFrame
    """One row a machine measured elsewhere that this one is held against."""
    reference_cells: pd.DataFrame
    """One row a cell of such a machine that agrees with one here, as in `cells`."""
    largest_batches: pd.DataFrame
    """One row a search for the largest batch."""
    claims: pd.DataFrame
    """One row a published statement and machine, with the verdict."""
    problems: pd.DataFrame
    """One row a kind of problem and its cells."""
    answers: pd.DataFrame
    """One row a question and line."""

    def of_study(self, study: str) -> RunTables:
        """The same tables with the rows of one study; roofs and references belong to all."""
        own = [name for name in TABLE_NAMES if name not in ("roofs", "references")]
        return replace(self, **{name: of_study(getattr(self, name), study) for name in own})


TABLE_NAMES = tuple(table.name for table in fields(RunTables))
DERIVED = TABLE_NAMES[1:]
"""The tables that are made of the measurements, trainings and searches."""


def run_tables(**known: pd.DataFrame) -> RunTables:
    """The tables of a run; those that are not given are empty, with their columns."""
    known = {"measurements": pd.DataFrame(columns=list(COLUMNS)), **known}
    return RunTables(**{name: known[name] if name in known else table_of(name) for name in TABLE_NAMES})


def read_run(folder: Path) -> RunTables:
    """The tables of a finished run from its results folder. Raises UserError for a file that is missing or damaged."""
    return RunTables(**{name: read_table(folder / f"{name}.parquet") for name in TABLE_NAMES})


def write_run(tables: RunTables, folder: Path) -> None:
    """Write the derived tables to a results folder, as Parquet and CSV; `write_rows` writes the measurements."""
    for name in DERIVED:
        columns = {column: {"doc": entry.doc, "unit": entry.unit} for column, entry in TABLES[name].items()}
        write_table(getattr(tables, name), columns, folder / f"{name}.parquet", folder / f"{name}.csv")

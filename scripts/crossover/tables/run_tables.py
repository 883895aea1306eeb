"""The tables of a run as one value that is read and written as a whole, and its report while it is outdated.

What was made of earlier measurements is set aside before new ones begin, so that it never lies beside them: Snakemake
deletes or restores the outputs of a job that failed, and leaves those of jobs that never ran.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pandas as pd

from crossover.files import atomic_path
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import of_study, read_table, write_table
from crossover.tables.registry import TABLES, table_of

OUTDATED = "outdated"
"""The folder below the results that an earlier report waits in until a new one is written."""

REPORT_FILES = {
    "report": "report.html",
    "markdown": "summary.md",
    "closing": "summary.txt",  # what a run prints at its end
    "provenance": "provenance.json",
    "columns": "datapackage.json",
    "rows": "measurements.schema.json",
    "thresholds": "thresholds.json",
}
"""What `write_report` makes, as the outputs of its rule."""

MARKED = {
    "report.html": ('<p class="note"><strong>', "</strong></p>"),
    "summary.md": ("**", "**\n\n"),
    "summary.txt": ("", "\n\n"),
}
"""The files that people read, with what goes around the mark in them."""

MARK = (
    "Outdated: a later run began to measure or to compute anew, and its report is not finished. "
    "If a job failed, fix what its log says; then run Snakemake again."
)


@dataclass(frozen=True)
class RunTables:
    """The tables of a run, one file each; a table that no study asks for is empty, with its columns."""

    measurements: pd.DataFrame
    """One row per trial."""
    roofs: pd.DataFrame
    """One row per roof of a device."""
    cells: pd.DataFrame
    """One row per cell: its trials summarised."""
    bottlenecks: pd.DataFrame
    """One row per cell whose remedies were tried: what bounds its step."""
    ratios: pd.DataFrame
    """One row per pair of cells: how many times as fast one is as the other."""
    crossovers: pd.DataFrame
    """One row per line, pair of sides and cost: where they cross."""
    best_configurations: pd.DataFrame
    """One row per candidate of a device at a size, of studies that have `candidates`."""
    latencies: pd.DataFrame
    """One row per cell and method to measure its latency."""
    quality: pd.DataFrame
    """One row per training."""
    quality_pairs: pd.DataFrame
    """One row per cell and metric: how its models differ from the CPU's in fp32."""
    references: pd.DataFrame
    """One row per machine measured elsewhere that this one is held against."""
    reference_cells: pd.DataFrame
    """One row per cell of such a machine that agrees with one here, as in `cells`."""
    largest_batches: pd.DataFrame
    """One row per search for the largest batch."""
    claims: pd.DataFrame
    """One row per published statement and machine, with the verdict."""
    problems: pd.DataFrame
    """One row per kind of problem and its cells."""
    answers: pd.DataFrame
    """One row per question and line."""

    def of_study(self, study: str) -> RunTables:
        """The same tables with the rows of one study; roofs and references belong to all."""
        names = [name for name in TABLE_NAMES if name not in ("roofs", "references")]
        return replace(self, **{name: of_study(getattr(self, name), study) for name in names})


TABLE_NAMES = tuple(table.name for table in fields(RunTables))
DERIVED = TABLE_NAMES[1:]
"""The tables that are made of the measurements, trainings and searches."""


def run_tables(**given: pd.DataFrame) -> RunTables:
    """The tables of a run; those that are not given are empty, with their columns."""
    empty = {"measurements": pd.DataFrame(columns=list(COLUMNS))} | {name: table_of(name) for name in DERIVED}
    return RunTables(**(empty | given))


def read_run(folder: Path) -> RunTables:
    """The tables of a finished run from its results folder. Raises UserError for a file that is missing or damaged."""
    return RunTables(**{name: read_table(folder / f"{name}.parquet") for name in TABLE_NAMES})


def write_run(tables: RunTables, folder: Path) -> None:
    """Write the derived tables to a results folder, as Parquet and CSV; `write_rows` writes the measurements."""
    for name in DERIVED:
        columns = {column: {"doc": entry.doc, "unit": entry.unit} for column, entry in TABLES[name].items()}
        write_table(getattr(tables, name), columns, folder / f"{name}.parquet", folder / f"{name}.csv")


def set_aside(results: Path) -> None:
    """Move the report, figures and derived tables of a results folder to `outdated/`, and say in the report why.

    Tables and figures that no report was made of are deleted: the next analysis makes them anew.
    """
    names = [
        *REPORT_FILES.values(),
        "figures",
        *(f"{name}.{suffix}" for name in DERIVED for suffix in ("parquet", "csv")),
    ]
    present = [results / name for name in names if (results / name).exists()]
    outdated = results / OUTDATED
    if (results / REPORT_FILES["report"]).is_file():
        shutil.rmtree(outdated, ignore_errors=True)
        outdated.mkdir()
        for path in present:
            path.rename(outdated / path.name)
        for name in MARKED:
            _mark(outdated / name)
    else:
        for path in present:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def forget_outdated(results: Path) -> None:
    """Delete what was set aside, once a new report is there."""
    shutil.rmtree(results / OUTDATED, ignore_errors=True)


def _mark(path: Path) -> None:
    """Put the mark at the head of a file that people read: of a page, at the head of its body."""
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    head, body, rest = text.partition("<body>") if path.suffix == ".html" else ("", "", text)
    before, after = MARKED[path.name]
    with atomic_path(path) as temporary:
        temporary.write_text(f"{head}{body}{before}{MARK}{after}{rest}", encoding="utf-8")

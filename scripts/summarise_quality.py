"""Computes scikit-learn's report of every training, and says whether a device changes the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from crossover.analysis.finished import finished_rows
from crossover.analysis.merging import check_environments
from crossover.analysis.quality import quality_table
from crossover.analysis.quality_words import reports_text
from crossover.analysis.tables import collect_rows, write_table
from crossover.errors import UserError, logged
from crossover.files import atomic_path
from crossover.trainings import Training

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def summarise_quality(
    paths_to_rows: Sequence[Path],
    class_names: Mapping[str, Sequence[str] | None],
    several_hosts: bool,
    path_to_parquet: Path,
    path_to_csv: Path,
    path_to_reports: Path,
) -> None:
    """Write one row a training, as Parquet and as CSV, and all reports as text."""
    if not paths_to_rows:
        raise UserError("studies: none of this run compares quality; add `quality`, or a study with a key of that name")
    rows = collect_rows(paths_to_rows, Training, "seed")
    check_environments(rows, several_hosts)
    write_quality(rows, class_names, path_to_parquet, path_to_csv, path_to_reports)


def summarise_finished(
    paths_asked_for: Sequence[Path],
    class_names: Mapping[str, Sequence[str] | None],
    several_hosts: bool,
    path_to_parquet: Path,
    path_to_csv: Path,
    path_to_reports: Path,
) -> None:
    """The same for a partial report, of what is there."""
    rows = finished_rows(paths_asked_for, several_hosts, Training, "seed")
    write_quality(rows, class_names, path_to_parquet, path_to_csv, path_to_reports)


def write_quality(
    rows: pa.Table,
    class_names: Mapping[str, Sequence[str] | None],
    path_to_parquet: Path,
    path_to_csv: Path,
    path_to_reports: Path,
) -> None:
    """Write the table of trainings, and scikit-learn's reports."""
    trainings = rows.to_pandas()
    table = quality_table(trainings, class_names)
    write_table(table, path_to_parquet, path_to_csv)
    with atomic_path(path_to_reports) as temporary:
        temporary.write_text(reports_text(trainings, table), encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        partial = snakemake.params.asked is not None
        summarise = summarise_finished if partial else summarise_quality
        summarise(
            [Path(path) for path in (snakemake.params.asked if partial else snakemake.input.rows)],
            class_names=snakemake.params.class_names,
            several_hosts=snakemake.params.several_hosts,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
            path_to_reports=Path(snakemake.output.reports),
        )

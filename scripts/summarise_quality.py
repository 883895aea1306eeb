"""Computes scikit-learn's report of every training, and says whether a device changes the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from crossover.answers.quality_words import reports_text
from crossover.errors import UserError, logged
from crossover.files import atomic_path
from crossover.machine.discovery import handed_down
from crossover.statistics.quality import quality_table
from crossover.tables.columns import Training
from crossover.tables.finished import finished_rows
from crossover.tables.frames import write_table
from crossover.tables.guards import matching_rows

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def trained_rows(paths_to_rows: Sequence[Path], several_hosts: bool) -> pa.Table:
    """The rows of all trainings; raises UserError where there are none."""
    if not paths_to_rows:
        raise UserError("studies: none of this run compares quality; add `quality`, or a study with a key of that name")
    return matching_rows(paths_to_rows, several_hosts, Training, "seed")


def summarise_quality(
    rows: pa.Table,
    class_names: Mapping[str, Sequence[str] | None],
    path_to_parquet: Path,
    path_to_csv: Path,
    path_to_reports: Path,
) -> None:
    """Write one row a training, as Parquet and as CSV, and scikit-learn's reports as text."""
    trainings = rows.to_pandas()
    table = quality_table(trainings, class_names)
    write_table(table, path_to_parquet, path_to_csv)
    with atomic_path(path_to_reports) as temporary:
        temporary.write_text(reports_text(trainings, table), encoding="utf-8")


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        hosts = snakemake.params.several_hosts or handed_down().elsewhere
        asked = snakemake.params.asked
        summarise_quality(
            trained_rows([Path(path) for path in snakemake.input.rows], hosts)
            if asked is None
            else finished_rows([Path(path) for path in asked], hosts, Training, "seed"),
            class_names=snakemake.params.class_names,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
            path_to_reports=Path(snakemake.output.reports),
        )

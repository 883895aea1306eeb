"""Fits a cost model to every line and device, as a guide and for predictions."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.errors import logged
from crossover.statistics.cost_models import model_lines
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def fit_cost_models(
    path_to_measurements: Path, steps_per_run: Mapping[str, Any], path_to_parquet: Path, path_to_csv: Path
) -> None:
    """Write one row for each line and device, as Parquet and as CSV."""
    write_table(model_lines(read_table(path_to_measurements), steps_per_run), path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        fit_cost_models(
            path_to_measurements=Path(snakemake.input.measurements),
            steps_per_run=snakemake.params.steps_per_run,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

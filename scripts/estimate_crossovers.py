"""Estimates the crossovers of devices, precisions and executions, line by line."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import logged
from crossover.statistics.comparisons import compare_lines
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def estimate_crossovers(
    path_to_measurements: Path,
    x_axes: Mapping[str, str],
    price_per_hour: Mapping[str, float] | None,
    path_to_parquet: Path,
    path_to_csv: Path,
) -> None:
    """Write one row for each line, pair and cost, as Parquet and as CSV."""
    crossovers = compare_lines(read_table(path_to_measurements), x_axes, price_per_hour)
    write_table(crossovers, path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        estimate_crossovers(
            path_to_measurements=Path(snakemake.input.measurements),
            x_axes=snakemake.params.x_axes,
            price_per_hour=snakemake.params.price_per_hour,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

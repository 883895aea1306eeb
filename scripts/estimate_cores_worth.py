"""Estimates how many CPU cores each accelerator is worth, size by size."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import logged
from crossover.statistics.cores_worth import compare_cores
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def estimate_cores_worth(
    path_to_measurements: Path, studies: Collection[str], path_to_parquet: Path, path_to_csv: Path
) -> None:
    """Write one row for each line, size and accelerator of the named studies, as Parquet and as CSV."""
    measurements = read_table(path_to_measurements)
    own = measurements[measurements["study"].isin(studies)]
    write_table(compare_cores(own), path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        estimate_cores_worth(
            path_to_measurements=Path(snakemake.input.measurements),
            studies=snakemake.params.studies,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

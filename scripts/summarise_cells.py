"""Summarises trials into cells."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import logged
from crossover.statistics.summary import summarise
from crossover.tables.frames import read_table, write_table

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def summarise_cells(
    path_to_measurements: Path, sizes: Mapping[str, Collection[int]] | None, path_to_parquet: Path, path_to_csv: Path
) -> None:
    """Write one row a cell, as Parquet and as CSV; `sizes` are those of each study's first grid, None: not known."""
    write_table(summarise(read_table(path_to_measurements), sizes), path_to_parquet, path_to_csv)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        summarise_cells(
            path_to_measurements=Path(snakemake.input.measurements),
            sizes=snakemake.params.sizes,
            path_to_parquet=Path(snakemake.output.parquet),
            path_to_csv=Path(snakemake.output.csv),
        )

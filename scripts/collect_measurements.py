"""Joins the rows of all trials into one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.analysis.merging import check_environments
from crossover.analysis.tables import collect_rows, write_rows
from crossover.errors import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def collect_measurements(
    paths_to_rows: Sequence[Path], several_hosts: bool, path_to_measurements: Path, threads: int = 1
) -> None:
    """Read one row a file, check that they belong together, and write them as one Parquet file."""
    rows = collect_rows(paths_to_rows, threads=threads)
    check_environments(rows, several_hosts)
    write_rows(rows, path_to_measurements)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        collect_measurements(
            paths_to_rows=[Path(path) for path in snakemake.input.rows],
            several_hosts=snakemake.params.several_hosts,
            path_to_measurements=Path(snakemake.output.measurements),
            threads=snakemake.threads,
        )

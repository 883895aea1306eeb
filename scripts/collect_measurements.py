"""Joins the rows of all trials into one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.analysis.finished import finished_rows
from crossover.analysis.merging import check_environments
from crossover.analysis.tables import collect_rows, write_rows
from crossover.errors import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def collect_measurements(paths_to_rows: Sequence[Path], several_hosts: bool, path_to_measurements: Path) -> None:
    """Read one row a file, check that they belong together, and write them as one Parquet file."""
    rows = collect_rows(paths_to_rows)
    check_environments(rows, several_hosts)
    write_rows(rows, path_to_measurements)


def collect_finished(paths_asked_for: Sequence[Path], several_hosts: bool, path_to_measurements: Path) -> None:
    """The same for a partial report, of what is there."""
    write_rows(finished_rows(paths_asked_for, several_hosts), path_to_measurements)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        partial = snakemake.params.asked is not None
        collect = collect_finished if partial else collect_measurements
        collect(
            [Path(path) for path in (snakemake.params.asked if partial else snakemake.input.rows)],
            several_hosts=snakemake.params.several_hosts,
            path_to_measurements=Path(snakemake.output.measurements),
        )

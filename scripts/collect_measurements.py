"""Joins the rows of all trials, or of several machines' runs, into one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.analysis.merged_runs import MergedRun, join_runs
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


def merge_measurements(runs: Sequence[MergedRun], path_to_measurements: Path) -> None:
    """Write the rows of all runs, each with the name of its machine, as one Parquet file."""
    write_rows(join_runs(runs), path_to_measurements)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        output = Path(snakemake.output.measurements)
        if snakemake.params.merged:
            merge_measurements([MergedRun(folder, name) for folder, name in snakemake.params.merged], output)
        else:
            rows = [Path(path) for path in snakemake.input.rows]
            collect_measurements(rows, snakemake.params.several_hosts, output)

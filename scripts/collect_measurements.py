"""Joins the rows of all trials, or of several machines' runs, into one table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.analysis.finished import finished_rows
from crossover.analysis.merged_runs import MergedRun, join_runs
from crossover.analysis.merging import check_environments
from crossover.analysis.tables import collect_rows, write_rows
from crossover.errors import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def collect_measurements(
    paths_to_rows: Sequence[Path], several_hosts: bool, path_to_measurements: Path, processes: int = 1
) -> None:
    """Read one row a file, check that they belong together, and write them as one Parquet file."""
    rows = collect_rows(paths_to_rows, processes=processes)
    check_environments(rows, several_hosts)
    write_rows(rows, path_to_measurements)


def collect_finished(
    paths_asked_for: Sequence[Path],
    several_hosts: bool,
    settings: Mapping[str, Sequence[str]],
    path_to_measurements: Path,
) -> None:
    """The same for a partial report, of what is there; `settings` as `finished_rows` has them."""
    write_rows(finished_rows(paths_asked_for, several_hosts, settings=settings), path_to_measurements)


def merge_measurements(runs: Sequence[MergedRun], path_to_measurements: Path) -> None:
    """Write the rows of all runs, each with the name of its machine, as one Parquet file."""
    write_rows(join_runs(runs), path_to_measurements)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        hosts, path_to_measurements = snakemake.params.several_hosts, Path(snakemake.output.measurements)
        if snakemake.params.merged:
            runs = [MergedRun(folder, name) for folder, name in snakemake.params.merged]
            merge_measurements(runs, path_to_measurements)
        elif snakemake.params.asked is None:
            collect_measurements(
                [Path(path) for path in snakemake.input.rows], hosts, path_to_measurements, snakemake.threads
            )
        else:
            asked = [Path(path) for path in snakemake.params.asked]
            collect_finished(asked, hosts, snakemake.params.settings, path_to_measurements)

"""Joins the rows of all trials, or of several machines' runs, into one table."""

from pathlib import Path
from typing import TYPE_CHECKING

from crossover.errors import logged
from crossover.machine.discovery import handed_down
from crossover.tables.finished import finished_rows
from crossover.tables.frames import reading_processes, write_rows
from crossover.tables.guards import matching_rows
from crossover.tables.merged_runs import MergedRun, join_runs

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake

if __name__ == "__main__":
    with logged(snakemake.log[0]):
        hosts = snakemake.params.several_hosts or handed_down().elsewhere
        if snakemake.params.merged:
            rows = join_runs([MergedRun(folder, name) for folder, name in snakemake.params.merged])
        elif snakemake.params.asked is None:
            paths = [Path(path) for path in snakemake.input.rows]
            rows = matching_rows(paths, hosts, processes=reading_processes())
        else:
            asked = [Path(path) for path in snakemake.params.asked]
            rows = finished_rows(asked, hosts, settings=snakemake.params.settings)
        write_rows(rows, Path(snakemake.output.measurements))

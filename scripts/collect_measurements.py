"""Join the rows of all trials into one table."""

from pathlib import Path
from typing import Any

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.tables.frames import write_rows
from crossover.tables.guards import matching_rows
from crossover.tables.rows import reading_processes

snakemake: Any  # injected by Snakemake

if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        paths = [Path(path) for path in snakemake.input.rows]
        rows = matching_rows(paths, snakemake.params.several_hosts, processes=reading_processes())
        write_rows(rows, Path(snakemake.output.measurements))

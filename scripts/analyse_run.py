"""Compute the tables of a run from its rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from crossover.errors import logged
from crossover.machine.turns import computing
from crossover.plan import plan_file
from crossover.tables.columns import Training
from crossover.tables.frames import read_table, write_run
from crossover.tables.guards import HOST_COLUMNS, check_environments, check_hosts, check_keys, matching_rows
from crossover.tables.reference_files import read_reference
from crossover.tables.roof_files import read_roofs
from crossover.tables.rows import collect_searches
from crossover.topics.analysis import analyse

snakemake: Any  # injected by Snakemake


def analyse_run(
    path_to_plan: Path,
    path_to_measurements: Path,
    paths_to_trainings: Sequence[Path],
    paths_to_searches: Sequence[Path],
    paths_to_roofs: Sequence[Path],
    several_hosts: bool,
    path_to_results: Path,
) -> None:
    """Write every table except the measurements to the results folder, as Parquet and CSV."""
    plan = plan_file.read(path_to_plan)
    trainings = matching_rows(paths_to_trainings, several_hosts, Training).to_pandas()
    searches = collect_searches(paths_to_searches)
    finished = searches[searches["status"] == "ok"]  # failed searches may lack the columns about the host
    check_environments(pa.Table.from_pandas(finished, preserve_index=False), several_hosts)
    roofs = read_roofs(paths_to_roofs)
    measurements = read_table(path_to_measurements)
    for table in (measurements, trainings):
        check_keys(table, plan.expected_keys)
    hosts = [_hosts_of(table) for table in (measurements, trainings, searches, roofs)]
    check_hosts(hosts, several_hosts)
    references = [read_reference(Path(folder)) for folder in plan.references]
    prices = plan.config["prices"]
    tables = analyse(measurements, trainings, searches, plan.studies, prices, roofs=roofs, references=references)
    write_run(tables, path_to_results)


def _hosts_of(table: pd.DataFrame) -> pa.Table:
    names = [name for name in ("machine", "device", *HOST_COLUMNS) if name in table]
    return pa.Table.from_pandas(table[names].drop_duplicates().astype("string"), preserve_index=False)


if __name__ == "__main__":
    with logged(snakemake.log[0]), computing():
        analyse_run(
            path_to_plan=Path(snakemake.input.plan),
            path_to_measurements=Path(snakemake.input.measurements),
            paths_to_trainings=[Path(path) for path in snakemake.input.trainings],
            paths_to_searches=[Path(path) for path in snakemake.input.searches],
            paths_to_roofs=[Path(path) for path in snakemake.input.roofs],
            several_hosts=snakemake.params.several_hosts,
            path_to_results=Path(snakemake.output.cells).parent,
        )

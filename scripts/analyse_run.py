"""Computes all tables of a run from its rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from crossover.answers.answers import answers_of
from crossover.claims.claims import check_claims
from crossover.config.words import threads_of_side
from crossover.errors import logged
from crossover.plan import plan_file
from crossover.statistics.cells import summarise
from crossover.statistics.cores_worth import cores_worth_of
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.latencies import latencies_of
from crossover.statistics.problems import list_problems
from crossover.statistics.quality import quality_pairs_of, quality_table
from crossover.statistics.ratios import ratios_of
from crossover.tables.columns import Training
from crossover.tables.finished import MissingResult
from crossover.tables.frames import read_table
from crossover.tables.guards import check_environments, matching_rows
from crossover.tables.run_tables import RunTables, run_tables, write_run
from crossover.tables.searches import collect_searches

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def analyse(
    measurements: pd.DataFrame,
    trainings: pd.DataFrame,
    searches: pd.DataFrame,
    studies: Mapping[str, Mapping[str, Any]],
    prices: Mapping[str, float] | None,
    missing: Iterable[MissingResult] = (),
    *,
    grids_known: bool = True,
) -> RunTables:
    """All tables of a run.

    `measurements` has one row a trial, `trainings` one a training, and `searches` is what `collect_searches` gives; all
    may be empty. `studies` holds the files of the measured studies by name, completed with defaults, `prices` the price
    of an hour on the machine of each device. `grids_known` is False for runs of other machines, which may have begun
    with other sizes than the studies have here: then no size counts as refined.
    """
    sizes = {name: study["sizes"] for name, study in studies.items()} if grids_known else {}
    cells = summarise(measurements, sizes, prices)
    classes = {name: (study["quality"] or {}).get("classes") for name, study in studies.items()}
    quality = quality_table(trainings, classes)
    on_fewer_cores = cells.loc[[threads_of_side(device) is not None for device in cells["device"]], "study"]
    tables = run_tables(
        measurements=measurements,
        cells=cells,
        ratios=ratios_of(measurements),
        crossovers=crossovers_of(measurements, {name: study["x_axis"] for name, study in studies.items()}, prices),
        latencies=latencies_of(measurements),
        cores_worth=cores_worth_of(measurements[measurements["study"].isin(on_fewer_cores)]),
        quality=quality,
        quality_pairs=quality_pairs_of(quality),
        largest_batches=searches,
        problems=list_problems({"trial": measurements, "training": trainings, "search": searches}, cells, missing),
    )
    claims = [
        {**claim, "study": name, "source": claim.get("source") or (study["published"] or {}).get("source")}
        for name, study in studies.items()
        for claim in study["claims"]
    ]
    steps = {name: study["steps_per_run"] for name, study in studies.items()}
    tables = replace(tables, claims=check_claims(claims, tables, steps))
    return replace(tables, answers=answers_of(tables, studies))


def analyse_run(
    path_to_plan: Path,
    path_to_measurements: Path,
    paths_to_trainings: Sequence[Path],
    paths_to_searches: Sequence[Path],
    several_hosts: bool,
    path_to_results: Path,
) -> None:
    """Write every table but the measurements to the results folder, as Parquet and as CSV."""
    plan = plan_file.read(path_to_plan)
    trainings = matching_rows(paths_to_trainings, several_hosts, Training).to_pandas()
    searches = collect_searches(paths_to_searches)
    found = searches[searches["status"] == "ok"]  # another may have ended before it knew where it ran
    check_environments(pa.Table.from_pandas(found, preserve_index=False), several_hosts)
    tables = analyse(read_table(path_to_measurements), trainings, searches, plan.studies, plan.config["prices"])
    write_run(tables, path_to_results)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        analyse_run(
            path_to_plan=Path(snakemake.input.plan),
            path_to_measurements=Path(snakemake.input.measurements),
            paths_to_trainings=[Path(path) for path in snakemake.input.trainings],
            paths_to_searches=[Path(path) for path in snakemake.input.searches],
            several_hosts=snakemake.params.several_hosts,
            path_to_results=Path(snakemake.output.cells).parent,
        )

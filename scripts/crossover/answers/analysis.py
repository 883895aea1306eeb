"""All tables of a run, computed from its rows in the order of the packages: statistics, claims, answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from crossover.answers.answers import answers_of
from crossover.claims.claims import check_claims
from crossover.config.claim_forms import claims_of
from crossover.config.studies import Candidates
from crossover.config.words import threads_of_side
from crossover.statistics.best import best_configurations_of, of_own_grid
from crossover.statistics.bottlenecks import bottlenecks_of
from crossover.statistics.cells import summarise
from crossover.statistics.cores_worth import cores_worth_of
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.latencies import latencies_of
from crossover.statistics.payback import STARTUP_COLUMNS
from crossover.statistics.problems import list_problems
from crossover.statistics.quality import quality_pairs_of, quality_table
from crossover.statistics.ratios import ratios_of
from crossover.statistics.references import agreeing, held_against
from crossover.statistics.roofs import with_roofs
from crossover.tables.finished import MissingResult
from crossover.tables.frames import with_x_axes
from crossover.tables.references import KEPT, Reference
from crossover.tables.registry import table_of
from crossover.tables.run_tables import RunTables, run_tables

COMPARED = ["machine", *KEPT, *STARTUP_COLUMNS]
"""Columns that pairs are computed from."""


def analyse(
    measurements: pd.DataFrame,
    trainings: pd.DataFrame,
    searches: pd.DataFrame,
    studies: Mapping[str, Mapping[str, Any]],
    prices: Mapping[str, float] | None,
    missing: Iterable[MissingResult] = (),
    *,
    roofs: pd.DataFrame | None = None,
    references: Sequence[Reference] = (),
    grids_known: bool = True,
) -> RunTables:
    """All tables of a run.

    `measurements` has one row a trial, `trainings` one a training, `searches` is what `collect_searches` gives and
    `roofs` what `read_roofs` gives; all may be empty. `studies` holds the files of the measured studies by name,
    completed with defaults, `prices` the price of an hour on the machine of each device. `grids_known` is False for
    runs of other machines, which may have begun with other sizes than the studies here: then no size counts as refined.
    Trials of cells that only `candidates` added count among the problems, and where devices at their best are compared;
    `references`, machines measured elsewhere, in pairs `reference` and their answers only.
    """
    candidates = {name: spec for name, study in studies.items() if (spec := Candidates.of(study))}
    all_trials, measurements = measurements, of_own_grid(measurements, candidates)
    studies = with_x_axes(studies, measurements)
    # Pairs select rows of these; with all hundred columns that takes seconds.
    compared, all_compared = measurements[COMPARED], all_trials[COMPARED]
    sizes = {name: study["sizes"] for name, study in studies.items()} if grids_known else {}
    roofs = table_of("roofs") if roofs is None else roofs
    cells = with_roofs(summarise(measurements, sizes, prices), measurements, roofs)
    classes = {name: (study["quality"] or {}).get("classes") for name, study in studies.items()}
    x_axes = {name: study["x_axis"] for name, study in studies.items()}
    elsewhere = agreeing(measurements, references)
    across, ratios_across = held_against(compared, elsewhere, x_axes, prices)
    on_fewer_cores = cells.loc[[threads_of_side(device) is not None for device in cells["device"]], "study"]
    tables = run_tables(
        measurements=measurements,
        roofs=roofs,
        cells=cells,
        bottlenecks=bottlenecks_of(measurements, cells),
        ratios=_joined(ratios_of(compared), ratios_across),
        crossovers=_joined(crossovers_of(all_compared, x_axes, prices, candidates), across),
        best_configurations=best_configurations_of(all_compared, candidates),
        latencies=latencies_of(measurements),
        cores_worth=cores_worth_of(measurements[measurements["study"].isin(on_fewer_cores)]),
        quality=quality_table(trainings, classes),
        quality_pairs=quality_pairs_of(trainings, classes),
        references=table_of("references", [reference.facts.row for reference in references]),
        reference_cells=summarise(elsewhere, prices=prices),
        largest_batches=searches,
        problems=list_problems({"trial": all_trials, "training": trainings, "search": searches}, cells, missing),
    )
    claims = [
        claim for name, study in studies.items() for claim in claims_of(name, study["published"], study["claims"])
    ]
    steps = {name: study["steps_per_run"] for name, study in studies.items()}
    tables = replace(tables, claims=check_claims(claims, tables, steps))
    return replace(tables, answers=answers_of(tables, studies))


def _joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([first, second], ignore_index=True) if len(second) else first

"""Compute the tables of a run: one step per table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd

from crossover.compare.best import best_series, of_own_grid, standings_of
from crossover.compare.cells import means_of, summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import Pairing, pairings
from crossover.compare.payback import STARTUP_COLUMNS
from crossover.compare.ratios import ratios_of
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.study import Study
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, threads_of_side
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import (
    in_study_order,
    studies_with_idle_size,
    with_cell_columns,
    with_parameters,
    with_x_axes,
)
from crossover.tables.reference_files import KEPT, Reference, with_facts
from crossover.tables.registry import CANDIDATES
from crossover.tables.run_tables import RunTables, run_tables, table_of
from crossover.topics.answers import answers_of
from crossover.topics.bottlenecks.bounds import bounds_of, with_roofs
from crossover.topics.bottlenecks.table import with_bottlenecks
from crossover.topics.claims.table import check_claims
from crossover.topics.correction import together_of
from crossover.topics.latency.table import latencies_of
from crossover.topics.quality.table import quality_table
from crossover.topics.ranking.table import machines_of
from crossover.topics.references.table import agreeing, compared_with_references

COMPARED = ["machine", *KEPT, "batch_name", *STARTUP_COLUMNS]


def analyse(
    measurements: pd.DataFrame,
    trainings: pd.DataFrame,
    searches: pd.DataFrame,
    studies: Mapping[str, Study],
    prices: Mapping[str, Any] | None,
    *,
    roofs: pd.DataFrame | None = None,
    references: Sequence[Reference] = (),
    grids_known: bool = True,
) -> RunTables:
    """The tables of a run.

    `measurements` has one row per trial, and `trainings` has one per training. `searches` is the result of
    `collect_searches`, and `roofs` is that of `read_roofs`. All may be empty. `studies` has them by
    name. If `grids_known` is False, no size counts as refined, as in merged runs, whose studies may
    have started with different sizes. Cells that only a study's `candidates` add are in table `candidate_cells` instead
    of `cells`. Series are in the order of the study, by which one of them is the first.
    """
    candidates = {name: study for name, study in studies.items() if study.candidates}
    with_candidates = with_parameters(in_study_order(measurements, studies))
    trials = of_own_grid(with_candidates, candidates)
    trials_there = agreeing(trials, references)
    studies = with_x_axes(studies, trials)
    x_axes = {name: study.x_axis for name, study in studies.items()}
    runs = {name: study.steps_per_run for name, study in studies.items()}
    means = means_of(with_candidates, prices) | means_of(trials_there, prices)

    # Who is compared with whom. With the other columns, selecting the trials of each pair would take seconds.
    all_compared = _with_plain_texts(with_candidates[COMPARED])
    compared = _in_rows_of_planes(all_compared.loc[trials.index], studies)
    pairs = [*pairings(compared, x_axes, prices, runs)]
    at_best = [*best_series(all_compared, candidates, x_axes)]
    ratios_there, pairs_there, predicted_cells = compared_with_references(
        compared, trials_there, x_axes, means, references, roofs=roofs, prices=prices
    )
    crossing = [*pairs, *chain(*(series.pairings() for series in at_best)), *pairs_there]
    crossing += _along_second_axes(compared, studies)
    idle = studies_with_idle_size(trials)
    crossing = [pair for pair in crossing if not (pair.study in idle and X_AXES[pair.x_axis] == "size")]
    ranked = {
        name: axis
        for name, axis in x_axes.items()
        if asks_for_crossovers(studies[name].figures) and not (name in idle and X_AXES[axis] == "size")
    }

    # The tables without comparisons, or whose comparisons are corrected within them.
    roofs = table_of("roofs") if roofs is None else roofs
    grids = {name: _first_points(study, trials) for name, study in studies.items()} if grids_known else {}
    cells = with_roofs(summarise(trials, means, grids), trials, roofs)
    standings = standings_of(at_best)
    added = all_compared.drop(trials.index).reindex(columns=list(COLUMNS))
    reference_cells = with_facts(summarise(trials_there, means, origin="reference"), references)
    classes = {name: study.quality.classes if study.quality else None for name, study in studies.items()}
    tables = run_tables(
        measurements=trials,
        roofs=roofs,
        cells=with_cell_columns(with_bottlenecks(cells, trials), standings, CANDIDATES),
        candidate_cells=with_cell_columns(summarise(added, means, origin="candidates"), standings, CANDIDATES),
        reference_cells=reference_cells,
        predicted_cells=predicted_cells,
        searched_cells=searches,
        quality=quality_table(trainings, classes),
        means=means,
    )

    # Comparisons are corrected for their number in a study (`together`), which is counted from uncorrected ratios.
    unranked = [pair for pair in pairs if pair.study not in ranked]
    uncorrected = replace(tables, ratios=_joined(ratios_of(compared, means, unranked), ratios_there))
    together = {
        name: together_of(uncorrected.of_study(name), study, [pair for pair in crossing if pair.study == name])
        for name, study in studies.items()
    }
    bounds = bounds_of(cells, trials, references, trials_there)
    tables = replace(
        tables,
        ratios=_joined(ratios_of(compared, means, pairs, together), ratios_there, bounds),
        crossovers=crossovers_of(crossing, together),
        machines=machines_of(_joined(cells, reference_cells), means, ranked, runs, together),
        latencies=latencies_of(trials, together),
    )
    tables = replace(tables, claims=check_claims(studies, tables, together, references))
    return replace(tables, answers=answers_of(tables, studies, together, (prices or {}).get("currency")))


def _with_plain_texts(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with texts as objects, of which pandas selects rows in one go, and of Arrow's column by column."""
    return trials.astype({name: object for name, dtype in trials.dtypes.items() if dtype == "str"})


def _joined(first: pd.DataFrame, *others: pd.DataFrame) -> pd.DataFrame:
    others_with_rows = [table for table in others if len(table)]
    return pd.concat([first, *others_with_rows], ignore_index=True) if others_with_rows else first


def _in_rows_of_planes(trials: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The trials without those that refinement added between the series of a study over two axes."""
    for name, study in studies.items():
        if study.second_axis and study.has_plane:
            in_series = trials[study.second_axis].isin(getattr(study, f"{study.second_axis}s"))
            trials = trials[in_series | (trials["study"] != name)]
    return trials


def _along_second_axes(trials: pd.DataFrame, studies: Mapping[str, Study]) -> list[Pairing]:
    """Pairs of devices along each study's second axis, without the points that refinement added.

    If the x axis is the number of cores, the second axis is the size, and each number of cores is a baseline.
    """
    second = {name: axis for name, study in studies.items() if (axis := study.second_axis)}
    on_grid = []
    for name in second:
        axis, points = _first_points(studies[name], trials)
        on_grid.append(trials[(trials["study"] == name) & trials[axis].isin(points)])
    over_cores = {name for name in second if studies[name].x_axis == CPU_THREADS}
    return [
        replace(pair, second_axis=True)
        for pair in (pairings(pd.concat(on_grid), second) if on_grid else ())
        if pair.pair == "device"
        and pair.other_machine is None
        and (pair.baseline == BASELINE or pair.study in over_cores)
    ]


def _first_points(study: Study, measurements: pd.DataFrame) -> tuple[str, Collection[Any]]:
    """The axis along which refinement adds points to a study, and the study's points without refinement."""
    if study.x_axis != CPU_THREADS:
        axis = X_AXES[study.x_axis]
        return axis, {*getattr(study, f"{axis}s")}
    on_all_cores = {device for device in measurements["device"].unique() if threads_of_side(device) is None}
    return "device", {*on_all_cores, *(f"{BASELINE}-{threads}" for threads in study.cpu_threads)}

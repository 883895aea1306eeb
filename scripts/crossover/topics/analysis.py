"""Compute the tables of a run: statistics, then claims, then answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.best import best_series, of_own_grid, standings_of
from crossover.compare.cells import means_of, summarise
from crossover.compare.lines import Line, lines_of, table_of_lines
from crossover.compare.pairings import pairings
from crossover.compare.payback import STARTUP_COLUMNS
from crossover.compare.ratios import ratios_of
from crossover.config.figure_kinds import asks_for_crossovers
from crossover.config.study import Study
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, threads_of_side
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import (
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
from crossover.topics.claims.caveats import with_caveats
from crossover.topics.claims.table import check_claims
from crossover.topics.correction import together_of
from crossover.topics.latency.table import latencies_of
from crossover.topics.quality.table import quality_table
from crossover.topics.ranking.table import machines_of
from crossover.topics.references.table import agreeing, compared_with_references

LISTED = ("variant", "protocol", "batch_size", "precision", "execution")
"""The axes whose values a study lists, under the axis's name in the plural."""

COMPARED = ["machine", *KEPT, *STARTUP_COLUMNS]


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
    all_trials = with_parameters(_in_study_order(measurements, studies).reset_index(drop=True))
    measurements = of_own_grid(all_trials, candidates)
    studies = with_x_axes(studies, measurements)
    # With the other columns, selecting the rows of each pair would take seconds.
    all_compared = _with_plain_texts(all_trials[COMPARED])
    compared = all_compared.loc[measurements.index]
    first_points = {name: _first_points(study, measurements) for name, study in studies.items()}
    roofs = table_of("roofs") if roofs is None else roofs
    cells = with_roofs(summarise(measurements, first_points if grids_known else {}, prices), measurements, roofs)
    classes = {name: study.quality.classes if study.quality else None for name, study in studies.items()}
    x_axes = {name: study.x_axis for name, study in studies.items()}
    runs = {name: study.steps_per_run for name, study in studies.items()}
    standings = standings_of(all_compared, candidates, x_axes)
    added = all_compared.drop(measurements.index).reindex(columns=list(COLUMNS))
    reference_trials = agreeing(measurements, references)
    reference_ratios, estimates = compared_with_references(compared, reference_trials, x_axes, prices)
    reference_cells = with_facts(summarise(reference_trials, prices=prices, origin="reference"), references)
    bounds = bounds_of(cells, measurements, references, reference_trials)
    idle = studies_with_idle_size(measurements)
    ranked = {
        name: axis
        for name, axis in x_axes.items()
        if asks_for_crossovers(studies[name].figures) and _is_true_axis(axis, name, idle)
    }
    pairs = [*pairings(compared, x_axes, prices, runs)]
    at_best = [pairing for series in best_series(all_compared, candidates, x_axes) for pairing in series.pairings()]
    own_lines = lines_of([*pairs, *at_best], x_axes)
    lines, second_lines = (
        [line for line in found if _is_true_axis(line.pairing.x_axis, line.pairing.study, idle)]
        for found in ([*own_lines, *estimates], _second_lines(compared, studies))
    )
    tables = run_tables(
        measurements=measurements,
        roofs=roofs,
        cells=with_cell_columns(with_bottlenecks(cells, measurements), standings, CANDIDATES),
        candidate_cells=with_cell_columns(summarise(added, prices=prices, origin="candidates"), standings, CANDIDATES),
        reference_cells=reference_cells,
        ratios=_joined(ratios_of(compared, [pair for pair in pairs if pair.study not in ranked]), reference_ratios),
        quality=quality_table(trainings, classes),
        searched_cells=searches,
        means=means_of(all_trials, prices) | means_of(reference_trials, prices),
    )
    together = {
        name: together_of(
            tables.of_study(name),
            name,
            study,
            [line for line in (*lines, *second_lines) if line.pairing.study == name],
        )
        for name, study in studies.items()
    }
    tables = replace(
        tables,
        ratios=_joined(ratios_of(compared, pairs, together), reference_ratios, bounds),
        crossovers=_joined(
            table_of_lines(lines, together),
            table_of_lines(second_lines, together).assign(second_axis=True),
        ),
        machines=machines_of(_joined(cells, reference_cells), tables.means, ranked, runs, together),
        latencies=latencies_of(measurements, together),
    )
    tables = replace(tables, claims=with_caveats(check_claims(studies, tables, together), studies, tables))
    return replace(tables, answers=answers_of(tables, studies, together, (prices or {}).get("currency")))


def _with_plain_texts(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with texts as objects, of which pandas selects rows in one go, and of Arrow's column by column."""
    return trials.astype({name: object for name, dtype in trials.dtypes.items() if dtype == "str"})


def _in_study_order(trials: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The trials of each study in the order of the values that it lists; other values, as of candidates, come last."""
    keys = [pd.factorize(trials["study"])[0]]
    for axis in LISTED:
        values = {name: getattr(study, f"{axis}s") for name, study in studies.items()}
        ranks = {(name, value): rank for name in values for rank, value in enumerate(values[name])}
        keys.append(np.array([ranks.get(key, len(ranks)) for key in zip(trials["study"], trials[axis], strict=True)]))
    return trials.iloc[np.lexsort(keys[::-1])]


def _joined(first: pd.DataFrame, *others: pd.DataFrame) -> pd.DataFrame:
    others_with_rows = [table for table in others if len(table)]
    return pd.concat([first, *others_with_rows], ignore_index=True) if others_with_rows else first


def _is_true_axis(x_axis: str, study: str, idle: Collection[str]) -> bool:
    """False over a size that changes nothing; `idle` are the studies with such a size."""
    return not (study in idle and X_AXES[x_axis] == "size")


def _second_lines(measurements: pd.DataFrame, studies: Mapping[str, Study]) -> list[Line]:
    """Crossovers between devices along each study's second axis, without the points that refinement added.

    If the x axis is the number of cores, the second axis is the size, and each number of cores is a baseline.
    """
    second = {name: axis for name, study in studies.items() if (axis := study.second_axis)}
    on_grid = []
    for name in second:
        axis, points = _first_points(studies[name], measurements)
        on_grid.append(measurements[(measurements["study"] == name) & measurements[axis].isin(points)])
    over_cores = {name for name in second if studies[name].x_axis == CPU_THREADS}
    return [
        line
        for line in (lines_of(pairings(pd.concat(on_grid), second), second) if on_grid else [])
        if line.cost == "time"
        and line.pairing.pair == "device"
        and line.pairing.other_machine is None
        and (line.pairing.baseline == BASELINE or line.pairing.study in over_cores)
    ]


def _first_points(study: Study, measurements: pd.DataFrame) -> tuple[str, Collection[Any]]:
    """The axis along which refinement adds points to a study, and the study's points without refinement."""
    if study.x_axis != CPU_THREADS:
        axis = X_AXES[study.x_axis]
        return axis, {*getattr(study, f"{axis}s")}
    on_all_cores = {device for device in measurements["device"].unique() if threads_of_side(device) is None}
    return "device", {*on_all_cores, *(f"{BASELINE}-{threads}" for threads in study.cpu_threads)}

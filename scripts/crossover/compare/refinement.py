"""Decide what to measure next to narrow a crossover down: first sizes within its bracket, then more trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from crossover.compare.best import (
    CANDIDATE_AXES,
    Candidate,
    CandidatesAtSizes,
    CandidatesByStudy,
    best_series,
    of_own_grid,
)
from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossovers import Interpolation
from crossover.compare.pairings import Pairing, XAxes, pairings
from crossover.config.studies import Cell, Refinement
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES
from crossover.config.workloads import workload_traits
from crossover.tables.frames import studies_with_idle_size, x_axes_of

REFINED = ("bracketed", "reversed")
"""Statuses with a single bracket, which can be refined."""


@dataclass(frozen=True)
class PairPlan:
    """The sizes and trials that a stage adds for both sides of a pair."""

    decision: str
    """bisect or add_trials, or why nothing is added: no_bracket, noisy, no_size_left, done, narrow_enough, decided."""
    sizes: tuple[int, ...] = ()
    """New sizes, which get the initial number of trials."""
    trials: Mapping[int, int] = field(default_factory=dict)
    """Total number of trials, by size, for sizes that were measured before."""

    def numbers(self, first: int) -> dict[int, range]:
        """The numbers of the trials to measure, by size; `first` is the initial number of trials."""
        new = {size: range(1, first + 1) for size in self.sizes}
        return new | {size: range(first + 1, most + 1) for size, most in self.trials.items()}


@dataclass(frozen=True)
class Request:
    """The trials that a stage adds for a crossover or a claim."""

    trials: Mapping[Cell, set[int]]
    """Numbers of the trials, also of those that were measured before."""
    why: Mapping[str, Any]
    """The decision, for the stage's file."""
    target_width: float | None = None
    """The half width that is asked for, as a share of the crossover; None for a claim."""


def all_trials(requests: Iterable[Request]) -> dict[Cell, list[int]]:
    """The numbers of the trials that requests add to each cell, ordered by the cell's path."""
    wanted: dict[Cell, set[int]] = defaultdict(set)
    for request in requests:
        for cell, numbers in request.trials.items():
            wanted[cell].update(numbers)
    return {cell: sorted(wanted[cell]) for cell in sorted(wanted, key=lambda cell: cell.path)}


def plan_refinement(
    crossover: Crossover,
    measured: Collection[int],
    stage: int,
    trials: int,
    refinement: Refinement,
    granularity: int = 1,
    sizes: tuple[int, ...] | None = None,
    to_x: Callable[[float], float | None] = float,
) -> PairPlan:
    """Plan a stage, numbered from 1, from the crossover after the previous stages.

    1. The first `bisections` stages each add the size nearest to the geometric mean of the bracket's ends. They add
       none if more trials are needed instead: if the interval is wider than the bracket or, without an interval, if a
       measured size lies within the bracket.
    2. The next stage raises the number of trials to that of the run. With a bracket, it does so at the bracket's sizes
       if the interval is unknown or wider than the target. Without a bracket, it does so at sizes without a significant
       difference and their neighbours. If the run started with single trials and has more than two, a stage of second
       trials comes before.
    3. The next stage adds `extra_trials` at the sizes of a bracket if the interval is unknown or wider than the target.
       Further ones double the number of trials there, `doublings` times.

    At a stair, the interval is the whole bracket, which trials at its ends cannot narrow. Stages 2 and 3 then halve the
    bracket instead, if the run has `bisections`.

    `crossover` is over sizes. New sizes are multiples of `granularity`, or are taken from `sizes` if the workload can
    build only these. `to_x` maps a size to the x axis, on which the target width is defined.
    """
    if stage <= refinement.bisections:
        return _bisect(crossover, measured, granularity, sizes)
    targets = refinement.trials_at_crossover(trials)
    number = stage - refinement.bisections - 1
    if number >= len(targets):
        return PairPlan("done")
    bracketed = _bracket(crossover) is not None
    if not bracketed and targets[number] > trials:
        return PairPlan("no_bracket")
    width = half_width(crossover, to_x)
    if bracketed and width is not None and width <= refinement.target_width:
        return PairPlan("narrow_enough")
    if refinement.bisections and bracketed and (crossover.low, crossover.high) == crossover.bracket:
        halved = _bisect(crossover, measured, granularity, sizes)
        if halved.sizes:
            return halved
    near = _inconclusive_sizes(crossover, sorted(measured), single_trials=number == 0 and refinement.first(trials) == 1)
    return PairPlan("add_trials", trials=dict.fromkeys(near, targets[number])) if near else PairPlan("decided")


def _bracket(crossover: Crossover) -> tuple[int, int] | None:
    if crossover.status not in REFINED or crossover.bracket is None:
        return None
    low, high = (round(end) for end in crossover.bracket if end is not None)
    return low, high


def _bisect(
    crossover: Crossover, measured: Collection[int], granularity: int, sizes: tuple[int, ...] | None
) -> PairPlan:
    bracket = _bracket(crossover)
    if bracket is None:
        return PairPlan("no_bracket")
    low, high = bracket
    if crossover.low is None or crossover.high is None:
        noisy = any(low < size < high for size in measured)
    else:
        noisy = crossover.high / crossover.low > high / low
    if noisy:
        return PairPlan("noisy")
    offered = _around(low, high, granularity) if sizes is None else sizes
    middle = _nearest_to_middle(low, high, set(offered).difference(measured))
    return PairPlan("no_size_left") if middle is None else PairPlan("bisect", sizes=(middle,))


def _inconclusive_sizes(crossover: Crossover, measured: Sequence[int], *, single_trials: bool) -> list[int]:
    """The sizes within the bracket or, without one, the sizes without a significant difference and their neighbours.

    If single trials cross several times, which may be chance, all sizes are returned.
    """
    if (bracket := _bracket(crossover)) is not None:
        low, high = bracket
        return [size for size in measured if low <= size <= high]
    if single_trials and crossover.status == "multiple":
        return list(measured)
    unsure = {measured.index(round(size)) for size in crossover.unsure}
    return [size for index, size in enumerate(measured) if unsure & {index - 1, index, index + 1}]


def _around(low: int, high: int, granularity: int) -> tuple[int, ...]:
    below = math.isqrt(low * high) // granularity * granularity
    return below, below + granularity


def _nearest_to_middle(low: int, high: int, sizes: Iterable[int]) -> int | None:
    middle = math.log(low * high) / 2
    between = sorted(size for size in sizes if low < size < high)
    return min(between, key=lambda size: abs(math.log(size) - middle), default=None)


def half_width(crossover: Crossover, to_x: Callable[[float], float | None]) -> float | None:
    """Half the interval's width as a share of the crossover, both mapped by `to_x`; None if a value is unknown."""
    low, middle, high = (
        None if size is None else to_x(size) for size in (crossover.low, crossover.size, crossover.high)
    )
    return None if low is None or middle is None or high is None else (high - low) / 2 / middle


def plan_stage(
    measurements: pd.DataFrame,
    stage: int,
    refinements: Mapping[str, Refinement],
    x_axes: XAxes,
    trials: Mapping[str, int],
    candidates: CandidatesByStudy | None = None,
    predicted: Sequence[Pairing] = (),
) -> list[Request]:
    """The trials that a stage (from 1) adds for each series and pair, which may be none.

    The mappings are by study. `trials` is the number of trials of the run, without `extra_trials`. `candidates` has the
    studies that compare devices at their best. Of pairs that are `predicted`, only the baseline is measured here, at
    points at which the contender was measured; they get trials only while these can narrow the interval.
    """
    timed = of_own_grid(measurements, candidates or {})
    x_axes = x_axes_of(x_axes, timed)
    first = {study: refinements[study].first(most) for study, most in trials.items()}
    requests = []

    def decide(pairing: Pairing) -> tuple[PairPlan, Crossover, dict[str, Any]]:
        along = pairing.along
        points = pairing.trials[along]
        crossover = pairing.crossover("time", along)
        to_x = Interpolation(points, pairing.trials[pairing.x_axis])
        traits = workload_traits(str(pairing.series["workload"]))
        offered = (traits.granularity, traits.sizes) if along == "size" else (1, None)
        measured = {round(point) for point in points}
        refinement = refinements[pairing.study]
        if pairing.prediction is not None:
            offered = (1, pairing.prediction.points)
            refinement = _of_prediction(refinement, half_width(crossover, to_x))
            crossover = crossover_of(replace(pairing.advantages("time", along), deviation=0.0))
        plan = plan_refinement(crossover, measured, stage, trials[pairing.study], refinement, *offered, to_x)
        why = (
            pairing.series
            | {name: getattr(pairing, name) for name in ("pair", "device", "baseline", "contender")}
            | {
                "status": crossover.status,
                "caveat": crossover.caveat,
                "bracket": crossover.bracket,
                "crossover": crossover.size,
                "interval": (crossover.low, crossover.high),
                "decision": plan.decision,
                "over": pairing.x_axis,
                "half_width": half_width(crossover, to_x),
            }
        )
        return plan, crossover, why

    idle = {study for study in studies_with_idle_size(timed) if X_AXES[x_axes[study]] == "size"}
    timed, all_trials = (rows[~rows["study"].isin(idle)] for rows in (timed, measurements))
    for pairing in [*pairings(timed, x_axes), *predicted]:
        is_asked = pairing.pair in refinements[pairing.study].pairs and pairing.has_crossovers
        if not is_asked or pairing.contender is None or not (pairing.is_headline or pairing.pair != "device"):
            continue
        plan, _, why = decide(pairing)
        trials_of = plan.numbers(first[pairing.study]).items()
        added = {cell: {*numbers} for point, numbers in trials_of for cell in _cells_at(pairing, point)}
        requests.append(Request(added, why, refinements[pairing.study].target_width))
    refined = {study: own for study, own in (candidates or {}).items() if "best" in refinements[study].pairs}
    for best in best_series(all_trials, refined, x_axes):
        for pairing in best.pairings():
            plan, crossover, why = decide(pairing)
            study = str(best.axes["study"])
            added = {}
            for device in (best.devices[pairing.baseline], best.devices[str(pairing.contender)]):
                for (candidate, point), numbers in trials_of_candidates(device, plan, crossover, first[study]).items():
                    axes = best.axes | {pairing.along: point} | dict(zip(CANDIDATE_AXES, candidate, strict=True))
                    added[Cell(**axes)] = numbers
            requests.append(Request(added, why, refinements[study].target_width))
    return requests


WIDTH_OF_TRIALS = 0.5
"""Share of a predicted crossover's width below which that of its trials is narrow enough: without any, the interval
would be 13 % narrower, since the squares of the errors add up."""


def _of_prediction(refinement: Refinement, width: float | None) -> Refinement:
    """The refinement of a predicted crossover, from the half width of its interval.

    It has no extra trials: 16 trials instead of 8 changed high / low 0.98-fold (median of six, in a default run).
    """
    width = max(refinement.target_width, WIDTH_OF_TRIALS * (width or 0.0))
    return replace(refinement, target_width=width, extra_trials=0)


def trials_of_candidates(
    device: CandidatesAtSizes, plan: PairPlan, crossover: Crossover, first: int
) -> dict[tuple[Candidate, int], set[int]]:
    """The trials that a plan adds to a device's candidates in play, and those of the `first` trials that they lack."""
    added = {key: set(numbers) for key, numbers in device.unfinished(first).items()}
    for size, numbers in plan.numbers(first).items():
        near = [round(end) for end in crossover.bracket or () if end is not None] if size in plan.sizes else [size]
        for candidate in device.candidates:
            if any(device.in_play(candidate, end) for end in near):
                new = set(numbers).difference(device.numbers(candidate, size))
                added.setdefault((candidate, size), set()).update(new)
    return {key: numbers for key, numbers in added.items() if numbers}


def _cells_at(pairing: Pairing, point: int) -> Iterator[Cell]:
    """The cells of both sides at a point; over threads, the contender has a single cell, a predicted one has none."""
    axes: dict[str, Any] = pairing.series | {"device": pairing.device}
    if pairing.prediction is not None:
        here = {"machine": pairing.baseline_machine, "device": pairing.baseline, pairing.along: point}
        yield Cell(**axes | here)
    elif pairing.x_axis == CPU_THREADS:
        at_point = pairing.trials[(pairing.trials["side"] == BASELINE) & (pairing.trials[CPU_THREADS] == point)]
        devices = [*at_point["device"].unique()] or [f"{BASELINE}-{point}"]
        for device in (devices[0], pairing.contender):
            yield Cell(**{**axes, "device": device})
    else:
        for side in (pairing.baseline, pairing.contender):
            yield Cell(**{**axes, X_AXES[pairing.x_axis]: point, pairing.axis: side})

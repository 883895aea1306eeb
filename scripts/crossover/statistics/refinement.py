"""What to measure next so that a crossover becomes narrower: sizes within its bracket first, then further trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from crossover.config.studies import Cell, Refinement
from crossover.config.workloads import workload_traits
from crossover.statistics.best import WAY_AXES, Way, WaysAtSizes, WaysByStudy, best_lines, of_own_grid
from crossover.statistics.crossover import Crossover, estimate_crossover
from crossover.statistics.crossovers import Interpolation
from crossover.statistics.pairings import Pairing, pairings
from crossover.tables.frames import first_row, with_ok_times
from crossover.tables.registry import LINE_AXES
from crossover.tables.x_axes import x_axes_of

REFINED = ("bracketed", "reversed")
"""Statuses with one bracket to measure in; with any other it is unknown where more would help."""


@dataclass(frozen=True)
class Plan:
    """What a stage adds for one pair of sides, and why."""

    decision: str
    """bisect, add_trials; or why nothing is added: no_bracket, noisy, no_size_left, done, narrow_enough."""
    sizes: tuple[int, ...] = ()
    """New sizes, for both sides and all trials."""
    trials: Mapping[int, int] = field(default_factory=dict)
    """Sizes already measured, and how many trials they shall have on both sides."""

    def numbers(self, trials: int) -> dict[int, range]:
        """Numbers of the trials to measure by size, where a cell of the run has so many trials."""
        new = {size: range(1, trials + 1) for size in self.sizes}
        return new | {size: range(trials + 1, most + 1) for size, most in self.trials.items()}


def plan_refinement(
    found: Crossover,
    measured: Collection[int],
    stage: int,
    trials: int,
    refinement: Refinement,
    granularity: int = 1,
    sizes: tuple[int, ...] | None = None,
    to_x: Callable[[float], float | None] = float,
) -> Plan:
    """Plan a stage, from 1, on the crossover that the stages before it left.

    Each of the first `bisections` stages adds the size nearest to the geometric middle of the bracket, unless it is the
    trials that leave the crossover in doubt: the interval is wider than the bracket, or, where there is none, a
    measured size lies within. The stages after them add trials at both ends of the bracket, and at sizes between them,
    while the interval is wider than the target, or unknown; at all sizes where single trials cross several times, which
    may be chance. `found` is on the size axis, `measured` are the sizes that need no measuring, `trials` is the run's
    number of trials per cell. New sizes are multiples of `granularity`, or taken from `sizes` if the workload can build
    only these. `to_x` maps a size to what the crossover is read over, where the target holds.
    """
    trial_stage = stage - refinement.bisections
    if found.status == "multiple" and trials == 1 and 0 < trial_stage <= refinement.trial_stages:
        return Plan("add_trials", trials=dict.fromkeys(sorted(measured), 1 + refinement.extra_trials))
    if found.status not in REFINED or found.bracket is None:
        return Plan("no_bracket")
    low, high = (round(end) for end in found.bracket if end is not None)
    if stage <= refinement.bisections:
        if found.low is None or found.high is None:
            noisy = any(low < size < high for size in measured)
        else:
            noisy = found.high / found.low > high / low
        if noisy:
            return Plan("noisy")
        offered = _around(low, high, granularity) if sizes is None else sizes
        middle = _nearest_to_middle(low, high, set(offered).difference(measured))
        return Plan("no_size_left") if middle is None else Plan("bisect", sizes=(middle,))
    if trial_stage > refinement.trial_stages or refinement.extra_trials == 0:
        return Plan("done")
    width = half_width(found, to_x)
    if width is not None and width <= refinement.target_width:
        return Plan("narrow_enough")
    near = sorted(size for size in {low, high}.union(measured) if low <= size <= high)
    most = trials + math.ceil(refinement.extra_trials * trial_stage / refinement.trial_stages)
    return Plan("add_trials", trials=dict.fromkeys(near, most))


def _around(low: int, high: int, granularity: int) -> tuple[int, ...]:
    """The multiples of the granularity on either side of the geometric middle."""
    below = math.isqrt(low * high) // granularity * granularity
    return below, below + granularity


def _nearest_to_middle(low: int, high: int, sizes: Iterable[int]) -> int | None:
    """The size strictly between both ends that is nearest to their geometric middle; the smaller one of two."""
    middle = math.log(low * high) / 2
    between = sorted(size for size in sizes if low < size < high)
    return min(between, key=lambda size: abs(math.log(size) - middle), default=None)


def half_width(found: Crossover, to_x: Callable[[float], float | None]) -> float | None:
    """Half the interval's width as a share of the crossover, in what it is read over; None if an end is open."""
    low, middle, high = (None if size is None else to_x(size) for size in (found.low, found.size, found.high))
    return None if low is None or middle is None or high is None else (high - low) / 2 / middle


def plan_stage(
    measurements: pd.DataFrame,
    stage: int,
    refinements: Mapping[str, Refinement],
    x_axes: Mapping[str, str],
    trials: int,
    ways: WaysByStudy | None = None,
) -> tuple[dict[Cell, list[int]], list[dict[str, Any]]]:
    """The trials that a stage, from 1, adds to each cell, and for each line and pair what was found and decided.

    `refinements` says by study how it is refined, `x_axes` what its crossovers are read over (size or parameters),
    `trials` how many trials a cell of the run has, `ways` which studies compare devices at their best.
    """
    every = with_ok_times(measurements)
    timed = of_own_grid(every, ways or {})
    lines = dict(iter(timed.groupby(LINE_AXES)))
    x_axes = x_axes_of(x_axes, timed)
    wanted: dict[Cell, set[int]] = defaultdict(set)
    why = []

    def decide(pairing: Pairing, contender: str, line: pd.DataFrame, axes: dict[str, Any]) -> tuple[Plan, Crossover]:
        refinement, over = refinements[axes["study"]], x_axes[axes["study"]]
        table = pairing.trials[["size", "side", "trial", "step_time_s"]]
        found = estimate_crossover(table, pairing.baseline, contender)
        to_x = Interpolation(line["size"], line[over])
        own = workload_traits(axes["workload"])
        measured = {round(size) for size in table["size"]}
        plan = plan_refinement(found, measured, stage, trials, refinement, own.granularity, own.sizes, to_x)
        why.append(
            axes
            | {name: getattr(pairing, name) for name in ("pair", "device", "baseline", "contender")}
            | {
                "status": found.status,
                "doubt": found.doubt,
                "bracket": found.bracket,
                "crossover": found.size,
                "interval": (found.low, found.high),
                "decision": plan.decision,
                "over": over,
                "half_width": half_width(found, to_x),
            }
        )
        return plan, found

    for pairing, contender in _asked_for(timed, refinements):
        line = lines[tuple(pairing.line[axis] for axis in LINE_AXES)]
        axes = first_row(line[LINE_AXES])
        plan, _ = decide(pairing, contender, line, axes)
        for size, numbers in plan.numbers(trials).items():
            for side in (pairing.baseline, contender):
                cell = {**axes, "size": size, "device": pairing.device, pairing.pair: side}
                wanted[Cell(**cell)].update(numbers)
    refined = {study: own for study, own in (ways or {}).items() if "best" in refinements[study].pairs}
    for best in best_lines(every, refined):
        for pairing in best.pairings():
            plan, found = decide(pairing, str(pairing.contender), pairing.trials, pairing.line)
            for device in (best.devices[pairing.baseline], best.devices[str(pairing.contender)]):
                for (way, size), added in trials_of_ways(device, plan, found, trials).items():
                    wanted[Cell(**{**best.axes, "size": size, **dict(zip(WAY_AXES, way, strict=True))})].update(added)
    in_order = sorted(wanted, key=lambda cell: cell.path)
    return {cell: sorted(wanted[cell]) for cell in in_order}, why


def trials_of_ways(device: WaysAtSizes, plan: Plan, found: Crossover, trials: int) -> dict[tuple[Way, int], set[int]]:
    """The trials that a plan adds to a device's ways, and those that ways in play lack of the run's."""
    added = {key: set(numbers) for key, numbers in device.unfinished(trials).items()}
    for size, numbers in plan.numbers(trials).items():
        near = [round(end) for end in found.bracket or () if end is not None] if size in plan.sizes else [size]
        for way in device.ways:
            if any(device.in_play(way, end) for end in near):
                new = set(numbers).difference(device.numbers(way, size))
                added.setdefault((way, size), set()).update(new)
    return {key: numbers for key, numbers in added.items() if numbers}


def _asked_for(measurements: pd.DataFrame, refinements: Mapping[str, Refinement]) -> Iterator[tuple[Pairing, str]]:
    """The pairings to narrow down, each with its contender; of devices, those with the CPU on all of its cores."""
    for pairing in pairings(measurements):
        asked = pairing.pair in refinements[str(pairing.line["study"])].pairs
        if asked and pairing.contender is not None and (pairing.is_headline or pairing.pair != "device"):
            yield pairing, pairing.contender

"""What to measure next so that a crossover becomes narrower: sizes within its bracket first, then further trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from crossover.config.studies import Refinement
from crossover.statistics.crossover import Crossover

REFINED = ("bracketed", "reversed")
"""Statuses with one bracket to measure in; elsewhere there is no telling where more would help."""


@dataclass(frozen=True)
class Plan:
    """What a stage adds for one pair of sides; empty where nothing would help or nothing is left to do."""

    sizes: tuple[int, ...] = ()
    """New sizes, for both sides and all trials."""
    trials: Mapping[int, int] = field(default_factory=dict)
    """Sizes already measured, and how many trials they shall have on both sides."""


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

    Each of the first `bisections` stages adds the size nearest to the geometric middle of the bracket; the one after
    them adds trials at both ends of the bracket where the interval is wider than the target. `found` is on the size
    axis, `measured` are the sizes that need no measuring any more, `trials` is the run's number of trials per cell. New
    sizes are multiples of `granularity`, or taken from `sizes` where the workload can build only these. `to_x` leads
    from a size to what the crossover is read over, where the target holds.
    """
    if found.status not in REFINED or found.bracket is None:
        return Plan()
    low, high = (round(end) for end in found.bracket)
    if stage <= refinement.bisections:
        offered = _around(low, high, granularity) if sizes is None else sizes
        middle = _nearest_to_middle(low, high, set(offered).difference(measured))
        return Plan() if middle is None else Plan(sizes=(middle,))
    width = half_width(found, to_x)
    too_wide = width is None or width > refinement.target_width
    helps = trials > 1 and refinement.extra_trials > 0 and too_wide
    if stage > refinement.bisections + 1 or not helps:
        return Plan()
    return Plan(trials=dict.fromkeys((low, high), trials + refinement.extra_trials))


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
    """Half the interval's width as a share of the crossover, in what it is read over; None where an end is open."""
    low, middle, high = (None if size is None else to_x(size) for size in (found.low, found.size, found.high))
    return None if low is None or middle is None or high is None else (high - low) / 2 / middle

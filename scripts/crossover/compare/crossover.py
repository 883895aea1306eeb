"""The size at which two sides take the same time, with its 95 % set.

There is a crossover only if the contender is significantly slower at one size and significantly faster at another.
Missing times are not imputed, and crossovers are not extrapolated. See docs/explanation/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from crossover.compare.crossover_curve import Advantages, Curve, curve_through
from crossover.compare.intervals import Floats


@dataclass(frozen=True)
class Crossover:
    """The crossover of a contender with a baseline; sizes are in the unit of the trials' column `size`."""

    status: str
    """One of CROSSOVER_STATUSES in `crossover.tables.registry`."""
    size: float | None = None
    low: float | None = None
    """Lower end of the connected part of the 95 % set around the crossover; None if open or unknown."""
    high: float | None = None
    """Upper end. With `edge_tie`, a crossover can lie only below `high` or above `low`, whichever is known."""
    bracket: tuple[float | None, float | None] | None = None
    """The nearest sizes between which the advantage changes its sign.

    Without an interval, they are the nearest sizes at which a side leads by ONE_TRIAL_LEAD. With `edge_tie` and without
    an interval, the end beyond the measured sizes is None.
    """
    roots: tuple[float, ...] = ()
    """The size of each significant crossing."""
    caveat: str | None = None
    """One of CAVEATS in `crossover.tables.registry`."""
    caveat_at: tuple[float, ...] = ()
    slower_up_to: float | None = None
    """The largest size at which the contender is significantly slower, corrected for the number of sizes."""
    faster_from: float | None = None
    """The smallest size at which the contender is significantly faster, corrected for the number of sizes."""
    sure: tuple[float, float] | None = None
    """The nearest sizes below and above the crossover at which a side is significantly faster, corrected likewise. The
    crossover lies between them, whatever the curve between sizes. None without intervals."""
    unsure: tuple[float, ...] = ()
    """Sizes without a significant difference."""


@dataclass(frozen=True)
class _Zero:
    """A zero of the curve, and the indices of the nearest sizes below and above it at which the advantage is not 0."""

    log_size: float
    below: int
    above: int


def crossover_of(advantages: Advantages) -> Crossover:
    """Estimate the size at which both sides take the same time, with its 95 % set.

    There is an interval only if each side has two trials at two sizes, or at the only size. Otherwise the status is
    based on leads of ONE_TRIAL_LEAD.
    """
    slower_up_to, faster_from = advantages.significant_ends()
    unsure = tuple(advantages.sizes[advantages.sure_signs() == 0].tolist())
    return replace(_crossing(advantages), slower_up_to=slower_up_to, faster_from=faster_from, unsure=unsure)


def _crossing(advantages: Advantages) -> Crossover:
    if not len(advantages.sizes):
        return Crossover("incomplete", caveat="no_common_size")
    sure = advantages.sure_signs()
    decided = np.flatnonzero(sure).tolist()
    changes = [(low, high) for low, high in pairwise(decided) if sure[low] != sure[high]]
    if not changes:
        return _no_crossing(advantages, sure, decided)
    curve = curve_through(advantages)
    zeros = _zeros(curve)
    crossings = [[zero for zero in zeros if low <= zero.below and zero.above <= high] for low, high in changes]
    roots = tuple(_root(advantages, _middle(zeros_between)) for zeros_between in crossings)
    if len(crossings) > 1:
        spans = [(advantages.sizes[zeros[0].below], advantages.sizes[zeros[-1].above]) for zeros in crossings]
        lost = [size for size in advantages.incomplete if any(below < size < above for below, above in spans)]
        return Crossover("multiple", roots=roots, **_caveat("lost_between", lost[:1]))
    status = "bracketed" if sure[decided[0]] < 0 else "reversed"
    return _single_crossing(status, curve, crossings[0], zeros, changes[0])


def _caveat(word: str, sizes: Sequence[float]) -> dict[str, Any]:
    return {"caveat": word, "caveat_at": tuple(map(float, sizes))} if len(sizes) else {}


def _zeros(curve: Curve) -> list[_Zero]:
    signs = np.sign(curve.advantages.mean)
    zeros = []
    for below, above in pairwise(np.flatnonzero(signs).tolist()):
        if signs[below] != signs[above]:
            tied = curve.log_sizes[below + 1 : above]
            zeros.append(_Zero(float(tied.mean()) if len(tied) else curve.root(below), below, above))
    return zeros


def _middle(zeros: list[_Zero]) -> _Zero:
    """The middle one of the zeros between two opposite significant signs; all but one zero may be noise."""
    return zeros[len(zeros) // 2]


def _root(advantages: Advantages, zero: _Zero) -> float:
    """The size at a zero, clipped to its bracket, since rounding may put it outside."""
    return float(np.clip(math.exp(zero.log_size), advantages.sizes[zero.below], advantages.sizes[zero.above]))


def _single_crossing(
    status: str, curve: Curve, zeros: list[_Zero], all_zeros: list[_Zero], change: tuple[int, int]
) -> Crossover:
    advantages, zero = curve.advantages, _middle(zeros)
    below, above = (zero.below, zero.above) if advantages.has_intervals else change
    bracket = float(advantages.sizes[below]), float(advantages.sizes[above])
    ends = advantages.sizes[zeros[0].below], advantages.sizes[zeros[-1].above]
    if missing := [size for size in advantages.incomplete if ends[0] < size < ends[1]]:
        return Crossover("incomplete", bracket=bracket, **_caveat("lost_between", missing[:1]))
    low, high = _interval(curve, zeros[0], zeros[-1]) if advantages.has_intervals else (None, None)
    others = [math.exp(zero.log_size) for zero in all_zeros if zero not in zeros]
    size = _root(advantages, zero)
    found = Crossover(status, size, low, high, bracket, (size,), **_caveat("may_cross_again", others[:1]))
    if not advantages.has_intervals:
        return found
    return replace(found, sure=(float(advantages.sizes[change[0]]), float(advantages.sizes[change[1]])))


def _interval(curve: Curve, first: _Zero, last: _Zero) -> tuple[float, float]:
    """The connected part of the 95 % set around the zeros; apart from rounding, it lies within the measured range."""
    tied = first.above - first.below > 1, last.above - last.below > 1
    left = curve.leaves_set(float(curve.log_sizes[first.below + 1]) if tied[0] else first.log_size, first.below, -1)
    right = curve.leaves_set(float(curve.log_sizes[last.above - 1]) if tied[1] else last.log_size, last.above - 1, 1)
    sizes = curve.advantages.sizes
    return left or float(sizes[0]), right or float(sizes[-1])


def _no_crossing(advantages: Advantages, sure: Floats, decided: list[int]) -> Crossover:
    signs = {float(sure[index]) for index in decided}
    beyond = [
        size
        for size in advantages.incomplete
        if (signs != {-1.0} and size < advantages.sizes[0]) or (signs != {1.0} and size > advantages.sizes[-1])
    ]
    if beyond:
        return Crossover("incomplete", **_caveat("lost_beyond", beyond[:1]))
    if not decided:
        return Crossover("undecided")
    first, last = decided[0], decided[-1]
    sign = sure[first]
    against = [advantages.sizes[index] for index in range(first, last) if advantages.mean[index] * sign < 0]
    if against:
        return Crossover("undecided", **_caveat("may_cross_back", against[:1]))
    unsure = _caveat("unsure_sizes", advantages.sizes[sure == 0])
    if first > 0 or last < len(sure) - 1:
        return _edge_tie(advantages, first, last, unsure)
    return Crossover("below_range" if sign > 0 else "above_range", **unsure)


def _edge_tie(advantages: Advantages, first: int, last: int, unsure: dict[str, Any]) -> Crossover:
    """A crossover that can lie only beyond the last significant size before a tie.

    The 95 % set would end closer to the tie, but no size beyond the last gap constrains the curve there.
    """
    at_start, at_end = first > 0, last < len(advantages.sizes) - 1
    if at_start and at_end:
        return Crossover("edge_tie", **unsure)
    low, high = (float(advantages.sizes[last]), None) if at_end else (None, float(advantages.sizes[first]))
    if not advantages.has_intervals:
        return Crossover("edge_tie", bracket=(low, high), **unsure)
    return Crossover("edge_tie", low=low, high=high, **unsure)


ESTIMATED = ("bracketed", "reversed", "edge_tie")
"""Statuses of crossovers with an interval or bracket, which may be open."""

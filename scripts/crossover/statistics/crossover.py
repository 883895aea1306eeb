"""The size at which two sides take the same time, with its 95 % set.

A crossover needs a size where the contender is surely behind and one where it is surely ahead. Nothing is imputed and
nothing is extrapolated. docs/explanation/statistics.md says how and why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from crossover.statistics.crossover_curve import Advantages, Curve, advantages_of_table, curve_through
from crossover.statistics.intervals import CLOCK_RESOLUTION, Floats


@dataclass(frozen=True)
class Crossover:
    """The crossover of a contender over a baseline. Sizes in the unit of the table's `size` column."""

    status: str
    """One of CROSSOVER_STATUSES in `crossover.tables.registry`."""
    size: float | None = None
    low: float | None = None
    """Lower end of the 95 % set, in its connected part around the crossover; None: open, or not known."""
    high: float | None = None
    """Upper end. With `edge_tie` a measured size: a crossover, if there is one, lies below `high`, or above `low`."""
    bracket: tuple[float | None, float | None] | None = None
    """Neighbouring sizes between which the sign changes; without an interval, the nearest where a lead counts.

    With `edge_tie`, and without an interval, the end beyond the sizes measured is None.
    """
    roots: tuple[float, ...] = ()
    """One for each crossing that is beyond doubt."""
    doubt: str | None = None
    """One of DOUBTS in `crossover.tables.registry`."""
    doubt_at: tuple[float, ...] = ()
    """The sizes that the doubt is about."""
    slower_up_to: float | None = None
    """The largest size at which the contender is significantly slower, simultaneously over all sizes."""
    faster_from: float | None = None
    """The smallest size at which it is significantly faster."""
    unsure: tuple[float, ...] = ()
    """Sizes at which the trials leave the sign in doubt."""


@dataclass(frozen=True)
class _Zero:
    """A zero of the curve, and the indices of the sizes around it; sizes of exact equality may lie between them."""

    log_size: float
    below: int
    above: int


def estimate_crossover(
    measurements: pd.DataFrame, baseline: str, contender: str, resolution: float = CLOCK_RESOLUTION
) -> Crossover:
    """Estimate the size from which `contender` is faster than `baseline`, with its 95 % set.

    `measurements` has columns size, side, trial and step_time_s (in seconds, or any other cost; NaN where a trial gave
    none). A size counts where both sides have a time; one that lacks a side is never filled in. Where a side has fewer
    than two sizes with two trials, no interval is given and the status rests on leads of ONE_TRIAL_LEAD. Several rows
    of one trial count as one. `resolution` is the step between two costs that can be read, as a share of the cost
    (`crossover.statistics.intervals.RESOLUTIONS`).

    Raises ValueError for a size that is unknown, infinite or not above 0.
    """
    sizes = measurements["size"].to_numpy(float, na_value=np.nan)
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        raise ValueError("every measurement needs its size, a finite number above 0")
    if not (measurements["side"] == contender).any():
        return Crossover("no_accelerator")
    return crossover_of(advantages_of_table(measurements, baseline, contender, resolution))


def crossover_of(advantages: Advantages) -> Crossover:
    """The crossover where L changes its sign beyond doubt."""
    slower_up_to, faster_from = advantages.significant_ends()
    unsure = tuple(advantages.sizes[advantages.sure_signs() == 0].tolist())
    return replace(_crossing(advantages), slower_up_to=slower_up_to, faster_from=faster_from, unsure=unsure)


def _crossing(advantages: Advantages) -> Crossover:
    if not len(advantages.sizes):
        return Crossover("incomplete", doubt="no_common_size")
    sure = advantages.sure_signs()
    decided = np.flatnonzero(sure).tolist()
    changes = [(low, high) for low, high in pairwise(decided) if sure[low] != sure[high]]
    if not changes:
        return _no_crossing(advantages, sure, decided)
    curve = curve_through(advantages)
    zeros = _zeros(curve)
    crossings = [[zero for zero in zeros if low <= zero.below and zero.above <= high] for low, high in changes]
    roots = tuple(_root(advantages, _middle(own)) for own in crossings)
    if len(crossings) > 1:
        holes = [size for size in advantages.incomplete if _spans(advantages, crossings, size)]
        return Crossover("multiple", roots=roots, **_doubt("lost_between", holes[:1]))
    status = "bracketed" if sure[decided[0]] < 0 else "reversed"
    return _single_crossing(status, curve, crossings[0], zeros, changes[0])


def _doubt(word: str, sizes: Sequence[float]) -> dict[str, Any]:
    """The fields of a doubt about some sizes; none without any."""
    return {"doubt": word, "doubt_at": tuple(map(float, sizes))} if len(sizes) else {}


def _spans(own: Advantages, crossings: list[list[_Zero]], size: float) -> bool:
    """Whether a size lies between the sizes that one of the crossings was found between."""
    return any(own.sizes[zeros[0].below] < size < own.sizes[zeros[-1].above] for zeros in crossings)


def _zeros(curve: Curve) -> list[_Zero]:
    """Where the curve changes its sign, ascending; sizes of exact equality that it only touches are stepped over."""
    signs = np.sign(curve.advantages.mean)
    found = []
    for below, above in pairwise(np.flatnonzero(signs).tolist()):
        if signs[below] != signs[above]:
            tied = curve.log_sizes[below + 1 : above]
            found.append(_Zero(float(tied.mean()) if len(tied) else curve.root(below), below, above))
    return found


def _middle(zeros: list[_Zero]) -> _Zero:
    """Of the odd number of zeros between two sure signs: all but one may be noise."""
    return zeros[len(zeros) // 2]


def _root(own: Advantages, zero: _Zero) -> float:
    """A zero's size; rounding does not take it out of its bracket."""
    return float(np.clip(math.exp(zero.log_size), own.sizes[zero.below], own.sizes[zero.above]))


def _single_crossing(
    status: str, curve: Curve, zeros: list[_Zero], all_zeros: list[_Zero], change: tuple[int, int]
) -> Crossover:
    own, zero = curve.advantages, _middle(zeros)
    below, above = (zero.below, zero.above) if own.known else change
    bracket = float(own.sizes[below]), float(own.sizes[above])
    ends = own.sizes[zeros[0].below], own.sizes[zeros[-1].above]
    if missing := [size for size in own.incomplete if ends[0] < size < ends[1]]:
        return Crossover("incomplete", bracket=bracket, **_doubt("lost_between", missing[:1]))
    low, high = _interval(curve, zeros[0], zeros[-1]) if own.known else (None, None)
    others = [math.exp(zero.log_size) for zero in all_zeros if zero not in zeros]
    size = _root(own, zero)
    return Crossover(status, size, low, high, bracket, (size,), **_doubt("may_cross_again", others[:1]))


def _interval(curve: Curve, first: _Zero, last: _Zero) -> tuple[float, float]:
    """The part of the set around the zeros, from the first to the last where noise made several.

    Sure signs on both sides end it within the range, or at its ends where rounding hides them.
    """
    tied = first.above - first.below > 1, last.above - last.below > 1
    left = curve.leaves_set(float(curve.log_sizes[first.below + 1]) if tied[0] else first.log_size, first.below, -1)
    right = curve.leaves_set(float(curve.log_sizes[last.above - 1]) if tied[1] else last.log_size, last.above - 1, 1)
    sizes = curve.advantages.sizes
    return left or float(sizes[0]), right or float(sizes[-1])


def _no_crossing(own: Advantages, sure: Floats, decided: list[int]) -> Crossover:
    """The answer where all sure signs agree."""
    signs = {float(sure[index]) for index in decided}
    beyond = [
        size
        for size in own.incomplete
        if (signs != {-1.0} and size < own.sizes[0]) or (signs != {1.0} and size > own.sizes[-1])
    ]
    if beyond:
        return Crossover("incomplete", **_doubt("lost_beyond", beyond[:1]))
    if not decided:
        return Crossover("undecided")
    first, last = decided[0], decided[-1]
    sign = sure[first]
    against = [own.sizes[index] for index in range(first, last) if own.mean[index] * sign < 0]
    if against:
        return Crossover("undecided", **_doubt("may_cross_back", against[:1]))
    unsure = _doubt("unsure_sizes", own.sizes[sure == 0])
    if first > 0 or last < len(sure) - 1:
        return _edge_tie(own, first, last, unsure)
    return Crossover("below_range" if sign > 0 else "above_range", **unsure)


def _edge_tie(own: Advantages, first: int, last: int, unsure: dict[str, Any]) -> Crossover:
    """The last size that is beyond doubt before a tie at an end is the bound; there is none between two ties.

    The set would end closer to the tie, but what a curve does in its last gap the sizes on one side cannot tell.
    """
    at_start, at_end = first > 0, last < len(own.sizes) - 1
    if at_start and at_end:
        return Crossover("edge_tie", **unsure)
    low, high = (float(own.sizes[last]), None) if at_end else (None, float(own.sizes[first]))
    if not own.known:
        return Crossover("edge_tie", bracket=(low, high), **unsure)
    return Crossover("edge_tie", low=low, high=high, **unsure)

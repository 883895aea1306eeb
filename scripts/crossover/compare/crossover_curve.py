"""The contender's advantage as a function of size: its mean and error at each measured size, and a curve through these.

Between sizes the curve is PCHIP (Fritsch and Butland, "A method for constructing local monotone piecewise cubic
interpolants", 1984), which neither overshoots nor adds a crossing between two sizes with the same sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.intervals import (
    CLOCK_RESOLUTION,
    Floats,
    SampleMean,
    has_intervals,
    holm,
    p_values,
    sure_signs,
    t_errors,
)
from crossover.compare.shrinkage import with_shared_spread

MOST_WRONG = 0.025
"""Maximum probability that any size of a series has a significant sign in the wrong direction."""

LEVEL = 0.96
"""Nominal level of the 95 % set. It is above 95 % since refinement chooses sizes by the data, which lowers coverage."""

STEPS = 32
"""Number of steps in which a gap between sizes is searched for an end of the set."""

STAIR = 1.5
"""A gap is a stair if it is more than this many times as steep as both gaps beside it; chosen by simulation."""

WITHOUT_ERROR = SampleMean(0.0, 0.0, 1)


@dataclass(frozen=True)
class Advantages:
    """L = ln(baseline time) - ln(contender time) at every size with a time on both sides, in ascending order."""

    sizes: Floats
    mean: Floats
    variance: Floats
    """Variance of the mean, with the spread of each side shared over the sizes; NaN if unknown."""
    fourth: Floats
    """Sum over sides of (variance of the side's mean)^2 / degrees of freedom. L has variance^2 / fourth degrees of
    freedom.
    """
    incomplete: tuple[float, ...]
    """Sizes at which a side has no time."""
    shared: SampleMean = WITHOUT_ERROR
    """Mean of the contender if it is the same cell at every size, else WITHOUT_ERROR. Its error is common to all sizes,
    so `variance` and `fourth` exclude it."""
    deviation: float | Floats = 0.0
    """Standard deviation of an error of `mean` that all sizes share and trials do not show, as of predicted times."""
    together: int = 1
    """Number of comparisons for which the significant signs are corrected, of which this series is one."""

    @property
    def has_intervals(self) -> bool:
        return has_intervals(self.variance + self.shared.variance)

    def errors(self, variance: Floats, fourth: Floats, together: int = 1, confidence: float = LEVEL) -> Floats:
        """Half widths of the intervals of L, from `variance` and `fourth` plus those of `shared`."""
        return t_errors(variance + self.shared.variance, fourth + self.shared.fourth, together, confidence)

    def sure_signs(self) -> Floats:
        """The sign of L at each size (-1, 0 or 1), or 0 where it is not significant.

        The one-sided level at each size is MOST_WRONG / (`together` x max(3, number of sizes)) (Bonferroni). Thus it is
        always stricter than that of the 95 % set.
        """
        return sure_signs(self.mean, self._significant_errors(self._tests))

    def stepwise_errors(self) -> Floats:
        """The smallest |L| at each size that is significant by Holm's procedure, corrected for undecided sizes only.

        It limits the probability of any wrong sign, too, if sizes are independent (Shaffer, "Control of directional
        errors with stagewise multiple test procedures", 1980).
        """
        return self._significant_errors(holm(self.together * self._p_values()))

    def _significant_errors(self, tests: int) -> Floats:
        return self.errors(self._all_variance, self.fourth, self.together * tests, 1 - 2 * MOST_WRONG)

    def p_value(self) -> float:
        """The p-value of the hypothesis that the sides do not differ at any size, as tested by `sure_signs`.

        It is NaN without `has_intervals`.
        """
        if not (len(self.sizes) and self.has_intervals):
            return math.nan
        return min(1.0, self._tests * float(np.nanmin(self._p_values())))

    def _p_values(self) -> Floats:
        return p_values(self.mean, self._all_variance + self.shared.variance, self.fourth + self.shared.fourth)

    @property
    def _all_variance(self) -> Floats:
        return self.variance + np.square(self.deviation)

    @property
    def _tests(self) -> int:
        return max(3, len(self.sizes))

    def significant_ends(self) -> tuple[float | None, float | None]:
        """The largest size with a significant sign of -1 and the smallest with 1; both None without `has_intervals`."""
        signs = self.sure_signs() if self.has_intervals else np.zeros(len(self.sizes))
        slower, faster = self.sizes[signs < 0], self.sizes[signs > 0]
        return (float(slower[-1]) if len(slower) else None), (float(faster[0]) if len(faster) else None)


def advantages_of_table(
    trials: pd.DataFrame,
    baseline: str,
    contender: str,
    resolution: float = CLOCK_RESOLUTION,
    *,
    constant: bool = False,
    x: str = "size",
    cost: str = "step_time_s",
    spread: SampleMean | None = None,
) -> Advantages:
    """The contender's advantage in column `cost` over column `x`, which is the size below.

    `trials` also has the columns side and trial; rows of one trial share a process and count once. A cost is NaN if a
    trial has none, and `resolution` is a share of it (`crossover.compare.intervals.RESOLUTIONS`). With `constant`,
    the contender has the same trials at every size. A size is used if both sides have a cost there. `spread` has the
    variance of a single trial of the baseline.

    Raises ValueError for a size that is unknown, infinite or not above 0.
    """
    sizes, seconds = (trials[name].to_numpy(float, na_value=np.nan) for name in (x, cost))
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        raise ValueError("every measurement needs a size: a finite number above 0")
    logs = np.full(len(seconds), np.nan)
    good = np.isfinite(seconds) & (seconds > 0)
    logs[good] = np.log(seconds[good])
    logs_at: dict[float, dict[str, dict[Any, list[float]]]] = {}  # for these few rows, pandas takes ten times as long
    columns = sizes.tolist(), trials["side"].tolist(), trials["trial"].tolist(), logs.tolist()
    for size, side, trial, log in zip(*columns, strict=True):
        if side in (baseline, contender):
            of_side = logs_at.setdefault(size, {baseline: {}, contender: {}})[side]
            of_side.setdefault(trial, []).extend([] if math.isnan(log) else [log])
    cells = {size: (_means(sides[baseline]), _means(sides[contender])) for size, sides in sorted(logs_at.items())}
    return advantages_of_cells(cells, resolution, constant=constant, spread=spread)


def _means(trials: Mapping[Any, Sequence[float]]) -> Floats:
    """The mean of each trial with values, sorted, so that the order of rows cannot change the last digit."""
    return np.array(sorted(math.fsum(logs) / len(logs) for logs in trials.values() if logs), dtype=float)


def advantages_of_cells(
    cells: Mapping[float, tuple[Floats, Floats]],
    resolution: float = CLOCK_RESOLUTION,
    *,
    constant: bool = False,
    spread: SampleMean | None = None,
) -> Advantages:
    """The advantages from ln(seconds) of the baseline's and the contender's trials, by size in ascending order."""
    complete = {size: sides for size, sides in cells.items() if all(map(len, sides))}
    baseline, contender = (
        [SampleMean.of(sides[side].tolist(), resolution) for sides in complete.values()] for side in (0, 1)
    )
    shared = contender[0] if constant and contender else WITHOUT_ERROR
    # A constant contender's error is common to all sizes.
    fixed = [SampleMean(shared.mean, 0.0, 1)] * len(contender)
    repeated = with_shared_spread(baseline, resolution)
    if spread is not None:
        singles = [SampleMean(cell.mean, spread.variance, spread.freedom) for cell in baseline]
        repeated = [
            new if cell.freedom else single for cell, new, single in zip(baseline, repeated, singles, strict=True)
        ]
    sides = repeated, fixed if constant else with_shared_spread(contender, resolution)
    differences = [baseline_log - contender_log for baseline_log, contender_log in zip(*sides, strict=True)]
    rows = [(difference.mean, difference.variance, difference.fourth) for difference in differences]
    mean, variance, fourth = np.array(rows, float).reshape(-1, 3).T
    incomplete = tuple(size for size in cells if size not in complete)
    return Advantages(np.array([*complete], float), mean, variance, fourth, incomplete, shared)


@dataclass(frozen=True)
class Curve:
    """The interpolated advantage L~ over ln(size), with errors from the spread of trials and from the curve's bend."""

    advantages: Advantages
    log_sizes: Floats
    smooth: Callable[[float | Floats], Floats]
    """L~ by ln(size)."""

    def root(self, gap: int) -> float:
        """ln(size) of the zero in a gap whose ends have opposite signs."""
        start, end = self.log_sizes[gap : gap + 2].tolist()
        if self.smooth(start) * self.smooth(end) >= 0:  # due to rounding
            return float(end)
        return _root(lambda log_size: float(self.smooth(log_size)), start, end, 1e-12)

    def excess(self, gap: int, share: Floats) -> Floats:
        """|L~| minus its error, at shares of the way through a gap; at most 0 within the 95 % set.

        The error is t x se plus the bend. se, which includes `deviation`, and its degrees of freedom are those of a
        point on the straight line between both ends of the gap. The bend is the distance of L~ from that line or, if
        larger, from `_kinked`. Between the ends of a stair it is infinite.
        """
        advantages = self.advantages
        (low, high), (v_low, v_high), (f_low, f_high), (d_low, d_high) = (
            np.broadcast_to(values, advantages.mean.shape)[gap : gap + 2]
            for values in (advantages.mean, advantages.variance, advantages.fourth, advantages.deviation)
        )
        start, end = self.log_sizes[gap : gap + 2]
        value = self.smooth(start + share * (end - start))
        line = (1 - share) * low + share * high
        variance = _weighed(v_low, v_high, share, 2) + np.square((1 - share) * d_low + share * d_high)
        trials = advantages.errors(variance, _weighed(f_low, f_high, share, 4))
        bend = np.maximum(np.abs(value - line), np.abs(value - self._kinked(gap, share, line)))
        if self.is_stair(gap):
            bend = np.where((share > 0) & (share < 1), np.inf, bend)
        return np.asarray(np.abs(value) - bend - trials)

    def is_stair(self, gap: int) -> bool:
        """True if L may step anywhere in the gap: it is more than STAIR times as steep as both gaps beside it.

        So it may between the only two sizes, since no other gap tells how L runs.
        """
        slopes = np.abs(self._slopes)
        if len(slopes) == 1:
            return True
        return bool(0 < gap < len(slopes) - 1 and slopes[gap] > STAIR * max(slopes[gap - 1], slopes[gap + 1]))

    @property
    def _slopes(self) -> Floats:
        """The slope of the straight line through each gap."""
        return np.diff(self.advantages.mean) / np.diff(self.log_sizes)

    def _kinked(self, gap: int, share: Floats, line: Floats) -> Floats:
        """The furthest that L can lie from the straight line between a gap's ends if it bends in one direction only.

        This is the nearer of the two neighbouring lines, extended into the gap. If these lie on opposite sides of the
        straight line, it is the straight line.
        """
        slopes, (start, end) = self._slopes, self.log_sizes[gap : gap + 2]
        if not 0 < gap < len(slopes) - 1:
            return line
        log_size = start + share * (end - start)
        before = self.advantages.mean[gap] + slopes[gap - 1] * (log_size - start) - line
        after = self.advantages.mean[gap + 1] + slopes[gap + 1] * (log_size - end) - line
        nearer = np.where(np.abs(before) < np.abs(after), before, after)
        return line + np.where(before * after > 0, nearer, 0.0)

    def leaves_set(self, log_size: float, gap: int, step: int) -> float | None:
        """The size where the set around a point ends to the left (step -1) or right (1); None if beyond the sizes."""
        while 0 <= gap < len(self.log_sizes) - 1:
            start, end = float(self.log_sizes[gap]), float(self.log_sizes[gap + 1])
            shares = np.linspace((log_size - start) / (end - start), 1.0 if step > 0 else 0.0, STEPS + 1)
            left = np.flatnonzero(self.excess(gap, shares)[1:] > 0)
            if len(left):
                return self._size_at(gap, self._edge(gap, *shares[left[0] : left[0] + 2].tolist()))
            gap, log_size = gap + step, end if step > 0 else start
        return None

    def _size_at(self, gap: int, share: float) -> float:
        """The size at a share of the way through a gap; exact at the gap's ends."""
        if share in (0.0, 1.0):
            return float(self.advantages.sizes[gap + round(share)])
        start, end = self.log_sizes[gap : gap + 2].tolist()
        return math.exp(start + (end - start) * share)

    def _edge(self, gap: int, inside: float, outside: float) -> float:

        def excess(share: float) -> float:
            return float(self.excess(gap, np.array([share]))[0])

        at_inside = excess(inside)
        if math.isinf(at_inside):  # at a stair, or if no error is known at one end of the gap
            return outside
        return _root(excess, inside, outside, 1e-10)


def curve_through(advantages: Advantages) -> Curve:
    """The curve through the advantages, at two sizes or more."""
    from scipy import interpolate  # slow to import, and not needed without a crossover

    log_sizes = np.log(advantages.sizes)
    return Curve(advantages, log_sizes, interpolate.PchipInterpolator(log_sizes, advantages.mean))


def _root(function: Callable[[float], float], start: float, end: float, tolerance: float) -> float:
    from scipy import optimize  # slow to import, and not needed without a crossover

    return float(optimize.brentq(function, start, end, xtol=tolerance))


def _weighed(low: float | Floats, high: float | Floats, share: Floats, power: int) -> Floats:
    """(1 - share)^power low + share^power high; an end that is NaN is ignored where its weight is 0."""
    return np.where(share < 1, (1 - share) ** power * low, 0) + np.where(share > 0, share**power * high, 0)

"""The contender's advantage as a curve over the logarithm of the size: where it is zero, and where it may be.

Between sizes the curve is PCHIP (Fritsch and Butland, "A method for constructing local monotone piecewise cubic
interpolants", 1984), which neither overshoots nor adds a crossing between two sizes of one sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import interpolate, optimize

from crossover.statistics.crossover_cells import Advantages, Floats, t_errors

LEVEL = 0.96
"""Of the t quantile behind the 95 % set. Refinement looks at the data before it measures on, which costs a point."""
STEPS = 32
"""Points at which the set is looked at between two sizes; its ends are then found to the last digit."""


@dataclass(frozen=True)
class Curve:
    """L~ over ln(size), and how far it may be off: by its trials, and by its bend between two sizes."""

    advantages: Advantages
    log_sizes: Floats
    coefficients: Floats
    """Of the cubic in each gap between two sizes, highest power first."""

    def root(self, gap: int) -> float:
        """ln(size) of the zero in a gap whose ends have opposite signs."""
        cubic = self.coefficients[:, gap]
        start, end = float(self.log_sizes[gap]), float(self.log_sizes[gap + 1])
        sign = np.sign(cubic[3])
        if _cubic(cubic, end - start) * sign >= 0:  # by rounding only
            return end
        return start + float(optimize.brentq(lambda x: float(_cubic(cubic, x)), 0, end - start, xtol=1e-12))

    def excess(self, gap: int, share: Floats) -> Floats:
        """|L~| less all that may be off, at shares of the way through a gap; at most 0: within the set.

        What may be off is t x se plus the bend: how far L~ lies from the straight line between both ends, or from where
        the neighbouring lines lead, whichever is more. se and the degrees of freedom are those of a point on the line.
        """
        own = self.advantages
        (low, high), (v_low, v_high), (f_low, f_high) = (
            values[gap : gap + 2] for values in (own.mean, own.variance, own.fourth)
        )
        value = _cubic(self.coefficients[:, gap], share * (self.log_sizes[gap + 1] - self.log_sizes[gap]))
        line = (1 - share) * low + share * high
        variance = _weighed(v_low, v_high, share, 2)
        trials = t_errors(variance, _weighed(f_low, f_high, share, 4), (1 + LEVEL) / 2)
        bend = np.maximum(np.abs(value - line), np.abs(value - self._kinked(gap, share, line)))
        found: Floats = np.abs(value) - bend - trials
        return found

    def _kinked(self, gap: int, share: Floats, line: Floats) -> Floats:
        """The furthest from the line between a gap's ends that L may lie if it bends one way only: on the nearer of the
        two neighbouring lines, led on into the gap. The line itself where these lie on either side of it, or one is
        missing.
        """
        if not 0 < gap < len(self.log_sizes) - 2:
            return line
        sizes, mean = self.log_sizes[gap - 1 : gap + 3], self.advantages.mean[gap - 1 : gap + 3]
        slopes = np.diff(mean) / np.diff(sizes)
        log_size = sizes[1] + share * (sizes[2] - sizes[1])
        before = mean[1] + slopes[0] * (log_size - sizes[1]) - line
        after = mean[2] + slopes[2] * (log_size - sizes[2]) - line
        nearer = np.where(np.abs(before) < np.abs(after), before, after)
        return line + np.where(before * after > 0, nearer, 0.0)

    def leaves_set(self, log_size: float, gap: int, step: int) -> float | None:
        """ln(size) where the part of the set around a point of a gap ends, to the left (step -1) or right (1).

        None where it reaches the end of the measured range.
        """
        return self._walk(log_size, gap, step, leaving=True)

    def enters_set(self, node: int, step: int) -> float | None:
        """ln(size) where the set begins to the left (step -1) or right (1) of a size beyond it; None: nowhere."""
        return self._walk(float(self.log_sizes[node]), node - (step < 0), step, leaving=False)

    def _walk(self, position: float, gap: int, step: int, leaving: bool) -> float | None:
        while 0 <= gap < len(self.log_sizes) - 1:
            start, end = float(self.log_sizes[gap]), float(self.log_sizes[gap + 1])
            begin = (position - start) / (end - start)
            shares = np.linspace(begin, 1.0 if step > 0 else 0.0, STEPS + 1)
            reached = np.flatnonzero((self.excess(gap, shares)[1:] > 0) == leaving)
            if len(reached):
                before, after = shares[reached[0] : reached[0] + 2].tolist()
                inside, outside = (before, after) if leaving else (after, before)
                return start + (end - start) * self._edge(gap, inside, outside)
            gap, position = gap + step, end if step > 0 else start
        return None

    def _edge(self, gap: int, inside: float, outside: float) -> float:
        """The share at which the set ends between one within it and one beyond it."""

        def excess(share: float) -> float:
            return float(self.excess(gap, np.array([share]))[0])

        at_inside = excess(inside)
        if at_inside >= 0:  # without any spread, the set is the zero itself
            return inside
        if math.isinf(at_inside):  # uncertainty unknown next to a size where it is known
            return outside
        return float(optimize.brentq(excess, inside, outside, xtol=1e-10))


def curve_through(advantages: Advantages) -> Curve:
    """The curve through the advantages at two sizes or more."""
    log_sizes = np.log(advantages.sizes)
    return Curve(advantages, log_sizes, interpolate.PchipInterpolator(log_sizes, advantages.mean).c)


def _cubic(coefficients: Floats, x: float | Floats) -> Floats:
    a, b, c, d = coefficients
    value: Floats = ((a * x + b) * x + c) * x + d
    return value


def _weighed(low: float, high: float, share: Floats, power: int) -> Floats:
    """(1 - share)^power low + share^power high; an unknown end counts only where it has a share."""
    return np.where(share < 1, (1 - share) ** power * low, 0) + np.where(share > 0, share**power * high, 0)

"""The cost model of a line: time = a + b n^c, a guide for the eye and for a size that was not measured.

It is fitted to the logarithms of the cells' times, where a miss is a share of the time whatever the size, by least
squares in which a large miss counts by its size, not its square (scipy's `soft_l1`). No interval is given: one
would hold only if the curve did (docs/method.md, "Cost model").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import least_squares

FEWEST_SIZES = 4
"""One more than the model has unknowns."""
LEAST_EXPONENT, MOST_EXPONENT = 0.25, 6.0
"""A slower growth could not be told from the constant part, and no workload grows faster."""
TOLERATED_MISS = 0.05
"""Misses up to about this share count by their squares; processes of a quiet host differ as much."""
LEAST_GROWTH = 1e-9
"""Least growing part at the largest size, as a share of the shortest time: b is above 0."""
STARTS = tuple(product((0.0, 0.5, 0.95), (0.5, 1.0, 2.0, 4.0)))
"""Constant part as a share of the shortest time, and exponent, from which a fit starts."""
FLAT = 1.5
"""A line whose times grow by less than this factor shows its constant part only."""
EXPONENT_LIMITS = (LEAST_EXPONENT * 1.01, MOST_EXPONENT * 0.99)
"""An exponent that is not between these was held at its least or its most."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


class NoModelError(Exception):
    """A line that cannot have a model; its text says why."""


@dataclass(frozen=True)
class CostModel:
    """Time of a step in s at size n: a + b n^c, with how far it misses the cells that it was fitted to.

    A miss is the factor between model and measurement, either way, less 1.
    """

    a_s: float
    b_s: float
    c: float
    rms_residual: float
    """Root mean square of the misses, over the sizes less the three unknowns."""
    largest_residual: float
    smallest_size: float
    largest_size: float
    sizes: int
    trial_spread: float | None
    """As `trial_spread` gives it."""

    def seconds(self, size: float) -> float:
        """Expected time of a step at a size, in s."""
        return self.a_s + self.b_s * float(size**self.c)

    @property
    def spread(self) -> float:
        """Standard deviation to expect of a trial about a prediction, as a share: of the misses and the trials."""
        return off_by(math.hypot(math.log1p(self.rms_residual), math.log1p(self.trial_spread or 0)))

    @property
    def growth(self) -> float:
        """Factor by which the time grows from the smallest to the largest measured size."""
        return self.seconds(self.largest_size) / self.seconds(self.smallest_size)

    def beyond(self, size: float) -> float:
        """Factor by which a size lies outside the measured range; 1 within it."""
        return max(self.smallest_size / size, size / self.largest_size, 1.0)

    def end(self, size: float) -> float:
        """The end of the measured range that a size lies beyond; the size itself within it."""
        return min(max(size, self.smallest_size), self.largest_size)

    def time_beyond(self, size: float) -> float:
        """Factor between the times at a size outside and at the nearest size measured, either way; 1 within."""
        return math.exp(abs(math.log(self.seconds(size) / self.seconds(self.end(size)))))

    @property
    def limited(self) -> bool:
        """Whether the times grow and the exponent is at one of its limits, so that another curve would fit better."""
        least, most = EXPONENT_LIMITS
        return not least < self.c < most and self.growth >= FLAT


def off_by(log_ratio: float) -> float:
    """The share of a miss whose ratio has this logarithm: a factor of 1.25 or of 1 / 1.25 is 0.25."""
    return math.expm1(abs(log_ratio))


def fit_cost_model(trials: Mapping[float, Sequence[float]]) -> CostModel:
    """Fit the model to the ok trials' times of a step in s, by size.

    Raises NoModelError where fewer than four sizes have a time, or where a size is no positive number.
    """
    timed = {float(size): np.log(times) for size, times in sorted(trials.items()) if len(times)}
    if len(timed) < FEWEST_SIZES:
        raise NoModelError(f"a model takes {FEWEST_SIZES} sizes with a time or more, not {len(timed)}")
    if min(timed) <= 0:
        raise NoModelError(f"size {min(timed):g} has no logarithm")
    sizes = np.array(list(timed))
    log_s = np.array([logs.mean() for logs in timed.values()])
    a_s, b_s, c = _fit(sizes, log_s)
    misses = np.log(a_s + b_s * sizes**c) - log_s
    return CostModel(
        a_s,
        b_s,
        c,
        off_by(math.sqrt(float(np.sum(misses**2)) / (len(sizes) - 3))),
        off_by(float(np.abs(misses).max())),
        float(sizes[0]),
        float(sizes[-1]),
        len(sizes),
        trial_spread(trials),
    )


def _fit(sizes: Floats, log_s: Floats) -> tuple[float, float, float]:
    """a in s, b in s per size^c, and c, from the best of several starts."""
    x = sizes / sizes[-1]
    shortest_s = math.exp(log_s.min())
    relative = log_s - log_s.min()

    def misses(unknowns: Floats) -> Floats:
        constant, log_growing, exponent = unknowns
        return np.asarray(np.log(constant + np.exp(log_growing) * x**exponent) - relative)

    most = float(relative.max()) + 1
    low, high = (0.0, math.log(LEAST_GROWTH), LEAST_EXPONENT), (math.exp(most), most, MOST_EXPONENT)
    fits = []
    for constant, exponent in STARTS:
        growing = max(float(np.exp(relative[-1])) - constant, 1e-3)
        start = (constant, math.log(growing), exponent)
        fits.append(least_squares(misses, start, bounds=(low, high), loss="soft_l1", f_scale=TOLERATED_MISS))
    constant, log_growing, exponent = min(fits, key=lambda fit: float(fit.cost)).x
    growing_s = shortest_s * math.exp(log_growing)
    return shortest_s * float(constant), growing_s / float(sizes[-1] ** exponent), float(exponent)


def trial_spread(trials: Mapping[float, Sequence[float]]) -> float | None:
    """Standard deviation of a trial's logarithm about its size's mean, over all sizes, as a share; None: one trial."""
    logs = [np.log(times) for times in trials.values() if len(times)]
    freedom = sum(len(own) - 1 for own in logs)
    if freedom == 0:
        return None
    squares = math.fsum(float(np.sum((own - own.mean()) ** 2)) for own in logs)
    return off_by(math.sqrt(squares / freedom))

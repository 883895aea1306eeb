"""Start-up of jobs, and the number of steps after which the side with the faster steps is ahead in total time.

A job of n steps takes `startup_s + n * step_s`. Both times are averaged arithmetically, since they are summed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd

from crossover.compare.cells import numbers_of
from crossover.compare.intervals import CLOCK_RESOLUTION, Floats, Interval, SampleMean, reading_error, t_quantile

PHASES = ("context", "build")
"""Phases of a trial that count as start-up; a CUDA graph is captured in `build`."""

STARTUP_COLUMNS = ("spent_s", "first_step_s")
"""The columns of measurements that `startups_of` needs; references lack them."""

PHASE_RESOLUTION_S = 1e-4
"""Resolution of PHASES, which `crossover.measurement.clock.timing.Phases` rounds to four decimals."""


@dataclass(frozen=True)
class RunCosts:
    """Start-up and step time of each trial of a cell."""

    startups_s: Sequence[float]
    steps_s: Sequence[float]

    @property
    def startup_s(self) -> float:
        return fmean(self.startups_s) if self.startups_s else math.nan

    @property
    def step_s(self) -> float:
        return fmean(self.steps_s)

    @property
    def step_resolution_s(self) -> float:
        return CLOCK_RESOLUTION * self.step_s

    def total(self, steps: float) -> SampleMean:
        totals_s = [startup + steps * step for startup, step in zip(self.startups_s, self.steps_s, strict=True)]
        return SampleMean.of(totals_s, PHASE_RESOLUTION_S + steps * self.step_resolution_s)

    def covariances(self) -> tuple[float, float, float]:
        """Variance of the mean start-up, covariance of both means, variance of the mean step time; needs two trials."""
        (startup, both), (_, step) = np.cov(self.startups_s, self.steps_s) / len(self.steps_s)
        return (
            max(startup, reading_error(PHASE_RESOLUTION_S) ** 2),
            both,
            max(step, reading_error(self.step_resolution_s) ** 2),
        )


def startups_of(measurements: pd.DataFrame) -> Floats:
    """Start-up of each trial in seconds; NaN if a part is unknown.

    It is the sum of PHASES and of the excess of the first step over later ones. The excess comes from lazy loading,
    autotuning or compilation.
    """
    if not {*STARTUP_COLUMNS} <= {*measurements}:
        return np.full(len(measurements), np.nan)
    phases = [json.loads(text) if isinstance(text, str) else {} for text in measurements["spent_s"]]
    before_s = np.array([sum(spent_s.get(name, math.nan) for name in PHASES) for spent_s in phases], dtype=float)
    startups_s: Floats = before_s + numbers_of(measurements["first_step_s"]) - numbers_of(measurements["step_time_s"])
    return startups_s


def run_costs(trials: pd.DataFrame) -> RunCosts:
    """The costs of the trials of a cell whose start-up is known."""
    startups_s, steps_s = startups_of(trials), numbers_of(trials["step_time_s"])
    is_known = ~np.isnan(startups_s)
    return RunCosts(startups_s[is_known].tolist(), steps_s[is_known].tolist())


def payback(contender: RunCosts, baseline: RunCosts, sign: float) -> Interval | None:
    """Number of steps after which the side with the faster steps is ahead in total time, with its 95 % interval.

    `sign` says which side that is: 1 the contender, -1 the baseline, 0 neither. It is that of the crossover between the
    sides, so that both agree on where a step is significantly faster. The result is 0 if that side does not start
    later. It is None without start-ups, with a sign of 0, or if the mean times of a step contradict the sign.

    With one trial on a side, there is no interval. The interval contains all numbers of steps at which the total times
    do not differ significantly (Fieller, "Some problems in interval estimation", 1954), with Welch's degrees of freedom
    at the estimate. Its upper end is None if these numbers have no upper bound.
    """
    if not contender.startups_s or not baseline.startups_s or not sign:
        return None
    faster, slower = (contender, baseline) if sign > 0 else (baseline, contender)
    gain_s, extra_s = slower.step_s - faster.step_s, faster.startup_s - slower.startup_s
    if gain_s <= 0:
        return None
    steps = max(extra_s / gain_s, 0.0)
    if min(len(faster.steps_s), len(slower.steps_s)) == 1:
        return Interval(steps)
    quantile = float(t_quantile((faster.total(steps) - slower.total(steps)).freedom))
    pairs = zip(faster.covariances(), slower.covariances(), strict=True)
    of_startup, of_both, of_step = (quantile**2 * sum(sides) for sides in pairs)
    # Steps n with (extra_s - n gain_s)^2 <= of_startup + 2 n of_both + n^2 of_step.
    square, half_linear, constant = gain_s**2 - of_step, extra_s * gain_s + of_both, extra_s**2 - of_startup
    root = math.sqrt(max(half_linear**2 - square * constant, 0.0))
    if square > 0:
        return Interval(steps, *(max((half_linear + side * root) / square, 0.0) for side in (-1, 1)))
    # No upper bound. If the faster side starts significantly later, the set is everything above the only root above 0.
    is_later = square and constant > 0 and extra_s > 0
    return Interval(steps, max((half_linear - root) / square, 0.0) if is_later else 0.0)

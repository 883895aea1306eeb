"""Means over trials with their 95 % intervals: of times, ratios, shares and differences.

Samples of one process are strongly correlated and say little about the next process, so only trials count. Times and
ratios are averaged on the log scale (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special  # its stats takes most of a second to import

from crossover.config.words import ENERGY_WINDOW_MIN_S

CONFIDENCE = 0.95

COMPARISONS = ("faster", "slower", "equivalent", "inconclusive", "single_trial")
FASTER, SLOWER, EQUIVALENT, INCONCLUSIVE, SINGLE_TRIAL = COMPARISONS
"""How a contender compares with a baseline."""

CLOCK_S = 1e-9
"""Step of the clock that times are read from (`time.perf_counter_ns`), in seconds."""
BLOCK_S = 0.01
"""Shortest block of steps that the presets time, in seconds."""
CLOCK_RESOLUTION = CLOCK_S / BLOCK_S
"""Step between two times that can be read, as a share of the time."""
EVENT_RESOLUTION = 0.5e-6 / BLOCK_S
"""Step between two shares of a block: CUDA events tell 0.5 us apart (CUDA Runtime API, cudaEventElapsedTime)."""
ENERGY_RESOLUTION = 0.1 / ENERGY_WINDOW_MIN_S
"""Step between two energies that can be read, as a share of the energy.

A counter moves at each update by what the device drew since the last one, so it is the period over the window. GPUs
update every 20 to 100 ms (Yang, Adamek and Armour, "Part-time power measurements: nvidia-smi's lack of attention",
2024), CPU packages every millisecond.
"""
RESOLUTIONS = {"time": CLOCK_RESOLUTION, "energy": ENERGY_RESOLUTION, "money": CLOCK_RESOLUTION}
"""By cost of a step; money is time by a price."""


def reading_error(resolution: float) -> float:
    """Standard error of a difference of two readings of a counter, in the unit of its step `resolution`.

    Each may lie a step below the truth, so that the difference is triangular (JCGM 100:2008, "Guide to the expression
    of uncertainty in measurement", 4.3.9). All trials may be rounded alike, so their number does not make it smaller.
    """
    return resolution / math.sqrt(6)


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; the ends are None where too few values give one."""

    mean: float
    low: float | None = None
    high: float | None = None


@cache
def t_quantile(freedom: float, together: int = 1) -> float:
    """Student's t quantile of a 95 % interval; of several that must hold `together`, by Bonferroni."""
    return float(special.stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / together))


def mean_over_trials(values: Sequence[float], together: int = 1, *, resolution: float) -> Interval:
    """Arithmetic mean of at least one value, with its t interval (Student, "The probable error of a mean").

    `resolution` is the step between two values that can be read; the standard error is at least that of reading them.
    """
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean)
    error = max(float(np.std(values, ddof=1)) / math.sqrt(len(values)), reading_error(resolution))
    spread = error * t_quantile(len(values) - 1, together)
    return Interval(mean, mean - spread, mean + spread)


def time_over_trials(medians_s: Sequence[float], together: int = 1, resolution: float = CLOCK_RESOLUTION) -> Interval:
    """Geometric mean of the trials' medians, in seconds, with its t interval on the log scale.

    Energies are averaged in the same way, with a `resolution` of ENERGY_RESOLUTION; it is a share of the value.
    """
    return _exp(mean_over_trials([math.log(median) for median in medians_s], together, resolution=resolution))


@dataclass(frozen=True)
class LogMean:
    """The mean of the logarithms of a side's times, its squared standard error (NaN with one trial), and freedom."""

    mean: float
    variance: float
    freedom: int

    @property
    def fourth(self) -> float:
        """Squared variance over the freedom, for Welch's degrees of freedom; NaN with one trial."""
        return self.variance**2 / self.freedom if self.freedom else math.nan

    @classmethod
    def of(cls, times: Sequence[float], resolution: float = CLOCK_RESOLUTION) -> LogMean:
        """Summarise the times of at least one trial; `resolution` is as in `time_over_trials`."""
        return cls.of_logs([math.log(time) for time in times], resolution)

    @classmethod
    def of_logs(cls, logs: Sequence[float], resolution: float = CLOCK_RESOLUTION) -> LogMean:
        """Summarise ln(time) of at least one trial."""
        mean, freedom = math.fsum(logs) / len(logs), len(logs) - 1
        if not freedom:
            return cls(mean, math.nan, 0)
        variance = math.fsum((log - mean) ** 2 for log in logs) / freedom / len(logs)
        return cls(mean, max(variance, reading_error(resolution) ** 2), freedom)

    @classmethod
    def of_interval(cls, time: Interval, trials: int) -> LogMean:
        """The summary behind `time_over_trials` of so many trials."""
        if time.low is None or time.high is None:
            return cls(math.log(time.mean), math.nan, 0)
        error = math.log(time.high / time.low) / 2 / t_quantile(trials - 1)
        return cls(math.log(time.mean), error**2, trials - 1)


def ratio_over_trials(
    first_s: Sequence[float],
    second_s: Sequence[float],
    together: int = 1,
    resolution: float = CLOCK_RESOLUTION,
) -> Interval:
    """Time of the second side over time of the first, from the medians of at least one trial each, in seconds.

    `resolution` is as in `time_over_trials`.
    """
    return ratio_of(LogMean.of(first_s, resolution), LogMean.of(second_s, resolution), together)


def ratio_of(first: LogMean, second: LogMean, together: int = 1) -> Interval:
    """Time of the second side over time of the first; of several ratios that must hold `together`, by Bonferroni.

    The interval is Welch's t interval of the difference of the mean logarithms (Welch, "The generalization of
    'Student's' problem when several different population variances are involved", 1947).
    """
    difference = second.mean - first.mean
    if not first.freedom or not second.freedom:
        return _exp(Interval(difference))
    # Written out, since scipy's t test knows no error of reading.
    variance = first.variance + second.variance
    freedom = variance**2 / (first.fourth + second.fourth)
    spread = t_quantile(freedom, together) * math.sqrt(variance)
    return _exp(Interval(difference, difference - spread, difference + spread))


def ratio_of_intervals(first: Interval, second: Interval) -> Interval:
    """Ratio of two independent values above 0, second over first, with the 95 % interval that those of both give.

    On logs, its half width to either side is the root of the sum of the squares of theirs on the sides that count
    (Zou and Donner, "Construction of confidence limits about effect measures: a general approach", 2008). No interval
    where an end of either is not known.
    """
    ratio = second.mean / first.mean
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(ratio)
    below = math.hypot(math.log(second.mean / second.low), math.log(first.high / first.mean))
    above = math.hypot(math.log(second.high / second.mean), math.log(first.mean / first.low))
    return Interval(ratio, ratio * math.exp(-below), ratio * math.exp(above))


def compared(ratio: Interval, margin: float = 0.0) -> str:
    """How a contender compares with a baseline: one of COMPARISONS. `ratio` is time of the baseline over its time.

    `equivalent` if the whole interval lies between 1 / (1 + margin) and 1 + margin; else `faster` or `slower` if it
    excludes 1; else `inconclusive`. `single_trial` without an interval.
    """
    low, high = (None if end is None else math.log(end) for end in (ratio.low, ratio.high))
    return decided(low, high, math.log1p(margin), FASTER, SLOWER)


def decided(low: float | None, high: float | None, margin: float, more: str, less: str) -> str:
    """The word on the interval of a difference.

    EQUIVALENT if all of it lies within `margin` of 0; else `more` or `less` if it excludes 0; else INCONCLUSIVE.
    SINGLE_TRIAL without an interval.
    """
    if low is None or high is None:
        return SINGLE_TRIAL
    if low >= -margin and high <= margin:
        return EQUIVALENT
    if low > 0:
        return more
    return less if high < 0 else INCONCLUSIVE


def paired_ratio(
    of: Sequence[float], over: Sequence[float], together: int = 1, resolution: float = CLOCK_RESOLUTION
) -> Interval:
    """Mean ratio of two values that each of at least one trial holds, with its interval over trials.

    `resolution` is that of both, as in `time_over_trials`.
    """
    ratios = [own / other for own, other in zip(of, over, strict=True)]
    return time_over_trials(ratios, together, math.sqrt(2) * resolution)


def share_over_trials(shares: Sequence[float]) -> Interval:
    """Mean of at least one trial's share of a block's time, with its t interval within 0 and 1."""
    found = mean_over_trials(shares, resolution=EVENT_RESOLUTION)
    if found.low is None or found.high is None:
        return found
    return Interval(found.mean, *(min(max(end, 0.0), 1.0) for end in (found.low, found.high)))


def _exp(logs: Interval) -> Interval:
    low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
    return Interval(math.exp(logs.mean), low, high)

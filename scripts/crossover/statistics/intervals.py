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

CONFIDENCE = 0.95


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


def mean_over_trials(values: Sequence[float], together: int = 1) -> Interval:
    """Arithmetic mean of at least one value, with its t interval (Student, "The probable error of a mean")."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean)
    spread = float(np.std(values, ddof=1) / math.sqrt(len(values))) * t_quantile(len(values) - 1, together)
    return Interval(mean, mean - spread, mean + spread)


def time_over_trials(medians_s: Sequence[float], together: int = 1) -> Interval:
    """Geometric mean of the trials' medians, in seconds, with its t interval on the log scale."""
    return _exp(mean_over_trials([math.log(median) for median in medians_s], together))


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
    def of(cls, times: Sequence[float]) -> LogMean:
        """Summarise the times of at least one trial."""
        logs = [math.log(time) for time in times]
        mean, freedom = math.fsum(logs) / len(logs), len(logs) - 1
        variance = math.fsum((log - mean) ** 2 for log in logs) / freedom / len(logs) if freedom else math.nan
        return cls(mean, variance, freedom)

    @classmethod
    def of_interval(cls, time: Interval, trials: int) -> LogMean:
        """The summary behind `time_over_trials` of so many trials."""
        if time.low is None or time.high is None:
            return cls(math.log(time.mean), math.nan, 0)
        error = math.log(time.high / time.low) / 2 / t_quantile(trials - 1)
        return cls(math.log(time.mean), error**2, trials - 1)


def ratio_over_trials(first_s: Sequence[float], second_s: Sequence[float], together: int = 1) -> Interval:
    """Time of the second side over time of the first, from the medians of at least one trial each, in seconds."""
    return ratio_of(LogMean.of(first_s), LogMean.of(second_s), together)


def ratio_of(first: LogMean, second: LogMean, together: int = 1) -> Interval:
    """Time of the second side over time of the first; of several ratios that must hold `together`, by Bonferroni.

    The interval is Welch's t interval of the difference of the mean logarithms (Welch, "The generalization of
    'Student's' problem when several different population variances are involved", 1947).
    """
    difference = second.mean - first.mean
    if not first.freedom or not second.freedom:
        return _exp(Interval(difference))
    # Written out, since scipy's t test gives no interval where no trial differs from the next.
    variance = first.variance + second.variance
    squares = first.fourth + second.fourth
    freedom = variance**2 / squares if squares > 0 else 1.0
    spread = t_quantile(freedom, together) * math.sqrt(variance)
    return _exp(Interval(difference, difference - spread, difference + spread))


def paired_ratio(of: Sequence[float], over: Sequence[float], together: int = 1) -> Interval:
    """Mean ratio of two values that each of at least one trial holds, with its interval over trials."""
    return time_over_trials([own / other for own, other in zip(of, over, strict=True)], together)


def share_over_trials(shares: Sequence[float]) -> Interval:
    """Mean of at least one trial's share, with its t interval within 0 and 1."""
    found = mean_over_trials(shares)
    if found.low is None or found.high is None:
        return found
    return Interval(found.mean, *(min(max(end, 0.0), 1.0) for end in (found.low, found.high)))


def _exp(logs: Interval) -> Interval:
    low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
    return Interval(math.exp(logs.mean), low, high)

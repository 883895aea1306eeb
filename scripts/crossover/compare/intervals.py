"""Means over trials with their 95 % intervals: of times, ratios, shares and differences.

Samples of one process are strongly correlated and do not show how processes differ, so intervals are computed over
trials. Times and ratios are averaged on the log scale (Kalibera and Jones, "Rigorous benchmarking in reasonable time",
2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special  # its stats takes most of a second to import

from crossover.config.words import ENERGY_WINDOW_MIN_S

Floats = NDArray[np.float64]

CONFIDENCE = 0.95

COMPARISONS = ("faster", "slower", "equivalent", "inconclusive", "single_trial")
FASTER, SLOWER, EQUIVALENT, INCONCLUSIVE, SINGLE_TRIAL = COMPARISONS
"""Outcomes of comparing a contender with a baseline. For values other than times, callers may rename the first two."""

ONE_TRIAL_LEAD = 2.0
"""Minimum speed-up, of either side, that counts as significant in a series without enough intervals (`has_intervals`).
Of 54 pairs of single trials of the same step on the same device of an H100 host, 17 differed by a factor of more than
1.25 and none by a factor of 2.
"""

CLOCK_S = 1e-9
"""Resolution of the clock (`time.perf_counter_ns`) in seconds."""
BLOCK_S = 0.01
"""Shortest timed block of steps in the presets, in seconds."""
CLOCK_RESOLUTION = CLOCK_S / BLOCK_S
EVENT_RESOLUTION = 0.5e-6 / BLOCK_S
"""Resolution of a share of a block: CUDA events resolve 0.5 us (CUDA Runtime API, cudaEventElapsedTime)."""
ENERGY_RESOLUTION = 0.1 / ENERGY_WINDOW_MIN_S
"""Resolution of an energy, as a share of the energy: the longest update period of a counter, divided by the window. The
counters of GPUs are updated every 20 to 100 ms (Yang, Adamek and Armour, "Part-time power measurements: nvidia-smi's
lack of attention", 2024), those of CPU packages every millisecond.
"""
RESOLUTIONS = {
    "time": CLOCK_RESOLUTION,
    "energy": ENERGY_RESOLUTION,
    "money": CLOCK_RESOLUTION,
    "run": CLOCK_RESOLUTION,
}
"""Resolution of each cost, as a share of the cost; money is time × price."""


def reading_error(resolution: float) -> float:
    """Standard error of the difference of two readings of a counter, in the unit of its `resolution`.

    Each reading may be up to one `resolution` too low, so the error of the difference has a triangular distribution
    (JCGM 100:2008, "Guide to the expression of uncertainty in measurement", 4.3.9). More trials do not make it smaller,
    since all of them may be rounded in the same way.
    """
    return resolution / math.sqrt(6)


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; an end is None if it is open or unknown."""

    mean: float
    low: float | None = None
    high: float | None = None

    def inverted(self) -> Interval:
        high, low = (None if end is None else 1 / end for end in (self.low, self.high))
        return Interval(1 / self.mean, low, high)


ENDS = ("", "_low", "_high")
"""The suffixes of an interval's columns: mean, lower and upper end."""


def columns_of(interval: Interval, name: str) -> dict[str, Any]:
    """An interval as columns; `name` has braces in place of ENDS, as in `step_time{}_s`."""
    values = (interval.mean, interval.low, interval.high)
    return {name.format(end): value for end, value in zip(ENDS, values, strict=True)}


def interval_of(row: Mapping[str, Any], name: str) -> Interval:
    """Read an interval from the columns of a row; `name` as in `columns_of`."""
    return Interval(*(row[name.format(end)] for end in ENDS))


def t_quantile(freedom: Any, together: int = 1, confidence: float = CONFIDENCE) -> Any:
    """Student's two-sided t quantile with Bonferroni's correction for `together` intervals, shaped as `freedom`."""
    return special.stdtrit(freedom, 1 - (1 - confidence) / 2 / together)


@dataclass(frozen=True)
class SampleMean:
    """The mean of a sample, its squared standard error (NaN if unknown), and the error's degrees of freedom."""

    mean: float
    variance: float
    freedom: float

    @classmethod
    def of(cls, values: Sequence[float], resolution: float) -> SampleMean:
        """Summarise at least one value; the standard error is at least `reading_error(resolution)`."""
        mean, freedom = math.fsum(values) / len(values), len(values) - 1
        if not freedom:
            return cls(mean, math.nan, 0)
        variance = math.fsum((value - mean) ** 2 for value in values) / freedom / len(values)
        return cls(mean, max(variance, reading_error(resolution) ** 2), freedom)

    @classmethod
    def of_times(cls, times: Sequence[float], resolution: float = CLOCK_RESOLUTION) -> SampleMean:
        """Summarise ln(time) of at least one trial; `resolution` is a share of the time."""
        return cls.of([math.log(time) for time in times], resolution)

    def widened(self, deviation: float) -> SampleMean:
        """The same mean with an additional error of known standard deviation."""
        variance = self.variance + deviation**2
        return SampleMean(self.mean, variance, variance**2 / self.fourth if self.freedom else 0)

    @property
    def fourth(self) -> float:
        """Squared variance over degrees of freedom; NaN if unknown. A difference has the sum of both means' values."""
        return self.variance**2 / self.freedom if self.freedom else math.nan

    def __sub__(self, other: SampleMean) -> SampleMean:
        """The difference of two means.

        Its degrees of freedom are Welch's ("The generalization of 'Student's' problem when several different
        population variances are involved", 1947). scipy's t test cannot include a reading error.
        """
        variance = self.variance + other.variance
        return SampleMean(self.mean - other.mean, variance, variance**2 / (self.fourth + other.fourth))

    def p_value(self, null: float = 0.0) -> float:
        """The two-sided p-value of the hypothesis that the mean is `null`; NaN if the standard error is unknown."""
        if math.isnan(self.variance):
            return math.nan
        return 2 * float(special.stdtr(self.freedom, -abs(self.mean - null) / math.sqrt(self.variance)))

    def expected_after(self, growth: float) -> SampleMean:
        """The same mean as if it were of `growth` times as many values with the same spread."""
        freedom = growth * (self.freedom + 1) - 1 if self.freedom else 0
        return SampleMean(self.mean, self.variance / growth, freedom)

    def exp_interval(self, together: int = 1) -> Interval:
        """The geometric mean of values whose logarithms are summarised, with its t interval."""
        logs = self.interval(together)
        low, high = (None if end is None else math.exp(end) for end in (logs.low, logs.high))
        return Interval(math.exp(logs.mean), low, high)

    def interval(self, together: int = 1) -> Interval:
        """The mean with its t interval, corrected for `together` intervals (Bonferroni)."""
        if math.isnan(self.variance):
            return Interval(self.mean)
        half_width = float(t_quantile(self.freedom, together)) * math.sqrt(self.variance)
        return Interval(self.mean, self.mean - half_width, self.mean + half_width)


def t_errors(variance: Floats, fourth: Floats, together: int = 1, confidence: float = CONFIDENCE) -> Floats:
    """Half widths of the intervals of differences, from `variance` and `fourth`; infinite where the variance is NaN."""
    quantiles = t_quantile(_freedom(variance, fourth), together, confidence)
    return np.where(np.isnan(variance), np.inf, quantiles * np.sqrt(variance))


def p_values(means: Floats, variance: Floats, fourth: Floats) -> Floats:
    """Two-sided p-values that differences are 0; arguments as for `t_errors`; NaN where `variance` is."""
    return np.asarray(2 * special.stdtr(_freedom(variance, fourth), -np.abs(means) / np.sqrt(variance)))


def _freedom(variance: Floats, fourth: Floats) -> Floats:
    return np.divide(variance**2, fourth, out=np.ones_like(variance), where=fourth > 0)


def has_intervals(half_widths: Floats) -> bool:
    """True if a series has intervals at two points or more, or at its only point."""
    return int(np.isfinite(half_widths).sum()) >= min(2, len(half_widths))


def sure_signs(log_ratios: Floats, half_widths: Floats) -> Floats:
    """The sign of each log ratio of a series (-1, 0 or 1), or 0 where it is not significant.

    Without `has_intervals`, a lead of ONE_TRIAL_LEAD or more counts as significant.
    """
    thresholds = half_widths if has_intervals(half_widths) else np.full_like(log_ratios, math.log(ONE_TRIAL_LEAD))
    return np.where(np.abs(log_ratios) >= thresholds, np.sign(log_ratios), 0.0)


def time_over_trials(medians_s: Sequence[float], resolution: float = CLOCK_RESOLUTION) -> Interval:
    """Geometric mean over trials, with its t interval on the log scale; `resolution` is a share of the value."""
    return SampleMean.of_times(medians_s, resolution).exp_interval()


def ratio_of(first: SampleMean, second: SampleMean, together: int = 1) -> Interval:
    """Time of the second side over that of the first, from their mean logarithms, corrected for `together` ratios."""
    return (second - first).exp_interval(together)


def ratio_of_intervals(first: Interval, second: Interval, together: int = 1) -> Interval:
    """The ratio of the second value to the first, both independent and above 0, from their 95 % intervals.

    It is corrected for `together` ratios (Bonferroni): the distances grow as those of a normal distribution would.

    On the log scale, the squared distance from the ratio to its lower end is the sum of two squared distances: of the
    second value to its lower end, and of the first to its upper end. The upper end is computed likewise (Zou and
    Donner, "Construction of confidence limits about effect measures: a general approach", 2008).
    """
    ratio = second.mean / first.mean
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Interval(ratio)
    wider = float(t_quantile(math.inf, together) / t_quantile(math.inf))
    below = wider * math.hypot(math.log(second.mean / second.low), math.log(first.high / first.mean))
    above = wider * math.hypot(math.log(second.high / second.mean), math.log(first.mean / first.low))
    return Interval(ratio, ratio * math.exp(-below), ratio * math.exp(above))


def compared(ratio: Interval, margin: float = 0.0, more: str = FASTER, less: str = SLOWER) -> str:
    """Compare a contender with a baseline: one of COMPARISONS, or `more` or `less` in place of the first two.

    `ratio` is the baseline's time over the contender's. The two are equivalent if the interval of the ratio lies
    between 1 / (1 + margin) and 1 + margin.
    """
    low, high = (None if end is None else math.log(end) for end in (ratio.low, ratio.high))
    return decided(low, high, math.log1p(margin), more, less)


def decided(low: float | None, high: float | None, margin: float, more: str, less: str) -> str:
    """The conclusion from the interval of a difference, with an equivalence margin."""
    if low is None or high is None:
        return SINGLE_TRIAL
    if low >= -margin and high <= margin:
        return EQUIVALENT
    if low > 0:
        return more
    return less if high < 0 else INCONCLUSIVE


def paired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], resolution: float = CLOCK_RESOLUTION
) -> SampleMean:
    """ln of the ratio of two values of the same trial, over trials; both values have this `resolution`."""
    ratios = [value / base for value, base in zip(numerators, denominators, strict=True)]
    return SampleMean.of_times(ratios, math.sqrt(2) * resolution)


def share_over_trials(shares: Sequence[float]) -> Interval:
    """Mean over trials of a share of the step time, with its t interval clipped to [0, 1]."""
    mean = SampleMean.of(shares, EVENT_RESOLUTION).interval()
    if mean.low is None or mean.high is None:
        return mean
    return Interval(mean.mean, *(min(max(end, 0.0), 1.0) for end in (mean.low, mean.high)))


FALSE_PER_STUDY = 1 - CONFIDENCE
"""Maximum probability that a study states a difference that does not exist. A crossover, its payback and a claim about
it are one comparison, and so are a mistake in measuring latencies and a claim about it.
"""


def holm(p_values: Iterable[float]) -> int:
    """The number of comparisons, at least 1, for which to correct each of them.

    Holm's procedure ("A simple sequentially rejective multiple test procedure", 1979) rejects the hypotheses with the
    smallest p-values, one after another, as long as p <= FALSE_PER_STUDY / (number of those left). An interval that is
    corrected for the number of those left at the end excludes a hypothesis exactly if the procedure rejects it. A
    p-value of NaN is never rejected.
    """
    ordered = sorted(1.0 if math.isnan(p_value) else p_value for p_value in p_values)
    rejected = 0
    while rejected < len(ordered) and ordered[rejected] <= FALSE_PER_STUDY / (len(ordered) - rejected):
        rejected += 1
    return max(1, len(ordered) - rejected)

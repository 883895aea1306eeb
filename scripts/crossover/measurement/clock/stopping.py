"""Stopping criteria for warm-up and timing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from crossover.config.studies import Effort
from crossover.measurement.clock.unlike import UNEVEN_SHARE, unevenness

T_975_19 = 2.0930240544082634
"""97.5 % quantile of the t distribution with 19 degrees of freedom, for 20 batches."""

STEADY_STEPS = 20
"""Minimum number of steps in each of the two groups that a warm-up compares, before `warmup_long_s`."""

CHECKED_EVERY = 10
"""Samples between two checks of a timing's precision."""


@dataclass
class Course:
    """Samples in seconds per step, and totals of steps and seconds, which may include steps without a sample."""

    samples_s: list[float] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    def add(self, block_s: float, steps: int) -> None:
        self.samples_s.append(block_s / steps)
        self.steps += steps
        self.seconds += block_s


def warmed_up(course: Course, effort: Effort, cycle_steps: int) -> bool:
    """True if a warm-up has enough steps and seconds and is steady; each of its samples is a cycle.

    After `warmup_long_s`, two samples are enough for a group, so that a few slow steps may suffice.
    """
    group = max(2, math.ceil(STEADY_STEPS / cycle_steps))
    long_enough = course.steps >= effort.warmup_min_steps and course.seconds >= effort.warmup_min_s
    return (long_enough and is_steady(course.samples_s, effort.warmup_tolerance, group)) or (
        course.seconds >= effort.warmup_long_s and is_steady(course.samples_s, effort.warmup_tolerance, group=2)
    )


def timed_enough(course: Course, effort: Effort) -> bool:
    """True if the timing has reached `timed_max_s`, or has enough blocks, alike and precise, and seconds at a check.

    A timing may stop too early in a quiet moment; the spread between trials reveals this.
    """
    count = len(course.samples_s)
    if count >= 2 and course.seconds >= effort.timed_max_s:  # the spread needs at least two blocks
        return True
    if count < effort.blocks_min or course.seconds < effort.timed_min_s or count % CHECKED_EVERY:
        return False
    is_precise = relative_half_width(course.samples_s) <= effort.timed_tolerance
    return is_precise and unevenness(course.samples_s) <= UNEVEN_SHARE


def is_steady(samples_s: Sequence[float], tolerance: float, group: int) -> bool:
    """True if a check is due and the medians of the last two groups of samples agree within `tolerance`.

    A group is a quarter of the samples, but at least `group` samples. Groups of a fixed size could miss a clock rate
    that rises for seconds, since 40 short steps look steady. Checks become rarer, because sorting after each step would
    slow the steps down.
    """
    count = len(samples_s)
    size = max(group, count // 4)
    interval = 2 ** max(0, count.bit_length() - 6)
    if count < 2 * size or count % interval:
        return False
    earlier, later = samples_s[-2 * size : -size], samples_s[-size:]
    return abs(statistics.median(later) / statistics.median(earlier) - 1) <= tolerance


def relative_half_width(samples_s: Sequence[float]) -> float:
    """Half width of the 95 % t interval over 20 batch medians, relative to their mean; infinite below 20 samples.

    A batch is a group of adjacent samples. These are correlated, so an interval over samples would be too narrow.
    """
    per_batch = len(samples_s) // 20
    if per_batch == 0:
        return math.inf
    used = samples_s[len(samples_s) - 20 * per_batch :]
    medians = [statistics.median(used[start : start + per_batch]) for start in range(0, len(used), per_batch)]
    return T_975_19 * statistics.stdev(medians) / math.sqrt(20) / statistics.fmean(medians)

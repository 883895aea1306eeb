"""When a warm-up or a timing has gone on long enough: rules as objects of one small interface.

A rule looks at everything measured so far and keeps no state, so that any can be tested on a list of numbers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crossover.config.studies import Effort

T_975_19 = 2.0930240544082634
"""97.5 % quantile of the t distribution with 19 degrees of freedom: 20 batches."""

STEADY_STEPS = 20
"""Least number of steps in each of the two groups that a steady warm-up compares."""


@dataclass
class Course:
    """What has been measured so far: samples in seconds per step, steps and seconds in all."""

    samples_s: list[float] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0

    def add(self, block_s: float, steps: int) -> None:
        """Add a block of `steps` steps that took `block_s` seconds."""
        self.samples_s.append(block_s / steps)
        self.steps += steps
        self.seconds += block_s


class Rule(Protocol):
    """Says whether a course may end."""

    def met(self, course: Course) -> bool:
        """Whether the rule is content with the course."""
        ...


@dataclass(frozen=True)
class AtLeast:
    """Met once there are this many samples, steps and seconds."""

    samples: int = 0
    steps: int = 0
    seconds: float = 0.0

    def met(self, course: Course) -> bool:
        """Whether all three are reached."""
        return len(course.samples_s) >= self.samples and course.steps >= self.steps and course.seconds >= self.seconds


@dataclass(frozen=True)
class Steady:
    """Met once the medians of the last two groups of samples are within `tolerance` of each other.

    A group is a quarter of the course, and at least `group` samples: two groups of 20 short steps lie so close together
    that a clock that rises over seconds would look steady between them. The course must grow by 2 to 3 % between two
    checks, for sorting it after each step would hold the steps up.
    """

    tolerance: float
    group: int

    def met(self, course: Course) -> bool:
        """Whether a check is due and the last two groups agree."""
        count = len(course.samples_s)
        size = max(self.group, count // 4)
        every = 2 ** max(0, count.bit_length() - 6)
        if count < 2 * size or count % every:
            return False
        earlier, later = course.samples_s[-2 * size : -size], course.samples_s[-size:]
        return abs(statistics.median(later) / statistics.median(earlier) - 1) <= self.tolerance


@dataclass(frozen=True)
class Precise:
    """Met once the 95 % t interval over 20 batch medians is within +-`tolerance` at two consecutive checks.

    Batches are equal runs of adjacent samples, since neighbours are correlated and their own spread says too little.
    A check is due every `every` samples; two in a row keep a lucky quiet moment from ending the timing.
    """

    tolerance: float
    every: int = 10

    def met(self, course: Course) -> bool:
        """Whether this check and the one before it are content."""
        count = len(course.samples_s)
        if count % self.every or count - self.every < 20:
            return False
        return all(
            relative_half_width(course.samples_s[:checked]) <= self.tolerance for checked in (count - self.every, count)
        )


def relative_half_width(samples_s: Sequence[float]) -> float:
    """Half width of the 95 % t interval over the medians of 20 batches, over their mean; infinite below 20 samples."""
    per_batch = len(samples_s) // 20
    if per_batch == 0:
        return math.inf
    used = samples_s[len(samples_s) - 20 * per_batch :]
    medians = [statistics.median(used[start : start + per_batch]) for start in range(0, len(used), per_batch)]
    return T_975_19 * statistics.stdev(medians) / math.sqrt(20) / statistics.fmean(medians)


@dataclass(frozen=True)
class AllOf:
    """Met once every one of its rules is."""

    rules: tuple[Rule, ...]

    def met(self, course: Course) -> bool:
        """Whether all are met."""
        return all(rule.met(course) for rule in self.rules)


@dataclass(frozen=True)
class AnyOf:
    """Met once one of its rules is."""

    rules: tuple[Rule, ...]

    def met(self, course: Course) -> bool:
        """Whether one is met."""
        return any(rule.met(course) for rule in self.rules)


def warmed_up(effort: Effort, cycle_steps: int) -> Rule:
    """Enough steps and seconds, and steady; or long, and steady with fewer samples (which here are cycles)."""
    steady = Steady(effort.warmup_tolerance, group=max(2, math.ceil(STEADY_STEPS / cycle_steps)))
    usual = AllOf((AtLeast(steps=effort.warmup_min_steps, seconds=effort.warmup_min_s), steady))
    # Of slow steps, a few are a long warm-up; two pairs of them still have to agree.
    slow = AllOf((AtLeast(seconds=effort.warmup_long_s), Steady(effort.warmup_tolerance, group=2)))
    return AnyOf((usual, slow))


def precise_enough(effort: Effort) -> Rule:
    """Enough blocks and seconds, and a narrow interval."""
    return AllOf((AtLeast(samples=effort.blocks_min, seconds=effort.timed_min_s), Precise(effort.timed_tolerance)))


def warmup_cap(effort: Effort) -> Rule:
    """The longest warm-up."""
    return AtLeast(seconds=effort.warmup_max_s)


def timing_cap(effort: Effort) -> Rule:
    """The longest timing; two blocks are the least that has a spread."""
    return AtLeast(samples=2, seconds=effort.timed_max_s)

"""Stopping criteria on lists of numbers; the interval is compared with scipy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crossover.config.studies import Effort
from crossover.measurement.clock.stopping import (
    T_975_19,
    Course,
    is_steady,
    relative_half_width,
    timed_enough,
    warmed_up,
)


def test_the_quantile_is_that_of_the_t_distribution() -> None:
    assert pytest.approx(stats.t.ppf(0.975, 19), rel=1e-12) == T_975_19


def reference_half_width(samples: list[float]) -> float:
    """scipy's t interval over numpy's medians of 20 equal batches of the latest samples."""
    medians = np.median(np.array(samples[len(samples) % 20 :]).reshape(20, -1), axis=1)
    low, high = stats.t.interval(0.95, 19, loc=medians.mean(), scale=stats.sem(medians))
    return float((high - low) / 2 / medians.mean())


@given(st.integers(20, 130), st.floats(0.01, 0.5), st.integers(0, 2**32 - 1))
def test_the_interval_agrees_with_scipy(count: int, spread: float, seed: int) -> None:
    samples = np.random.default_rng(seed).lognormal(-7, spread, count).tolist()
    assert relative_half_width(samples) == pytest.approx(reference_half_width(samples), rel=1e-9)


def test_there_is_no_interval_below_20_samples() -> None:
    assert relative_half_width([1.0] * 19) == np.inf
    assert relative_half_width([1.0] * 20) == 0


def samples_until(rule: Callable[[Course], bool], samples: list[float]) -> int:
    course = Course()
    for sample in samples:
        course.add(sample, 1)
        if rule(course):
            return len(course.samples_s)
    raise AssertionError("never met")


@pytest.mark.parametrize(
    ("samples", "group", "steady"),
    [
        ([1.0] * 39, 20, False),  # less than two groups
        ([1.0] * 40, 20, True),
        *(
            ([9.0] * 6 + [1.0] * 3 + [later] * 3, 3, steady)
            for later, steady in [(1.019, True), (1.021, False), (0.981, True), (0.979, False)]
        ),
        ([1.0, 50.0, 1.0, 1.0, 1.0, 90.0], 3, True),  # medians
        ([1.03] * 120 + [1.0] * 40, 20, False),  # groups of a quarter, although the last 40 agree
    ],
)
def test_samples_are_steady_within_the_tolerance(samples: list[float], group: int, steady: bool) -> None:
    assert is_steady(samples, 0.02, group) is steady


@pytest.mark.parametrize("samples", [128, 1024, 8192, 65_536])
def test_a_slow_ramp_is_not_steady_however_short_the_steps(samples: int) -> None:
    """The samples fall by a third, although neighbours hardly differ."""
    ramp = np.linspace(1.5, 1.0, samples).tolist()
    assert not any(is_steady(ramp[: samples * eighths // 8], 0.02, group=20) for eighths in (5, 6, 7, 8))


@pytest.mark.parametrize(("start", "stop", "most"), [(40, 63, 23), (1024, 2048, 33), (16384, 32768, 33)])
def test_steadiness_is_checked_rarely_among_many_samples(start: int, stop: int, most: int) -> None:
    samples, checks = [1.0] * (start - 1), 0
    for _ in range(start, stop):
        samples.append(1.0)
        checks += is_steady(samples, 0.02, group=20)  # equal samples are steady at every check
    assert 20 <= checks <= most


@pytest.mark.parametrize(
    ("effort", "cycle_steps", "samples", "count"),
    [
        # 0.5 s, then the next check; checks are 8 samples apart.
        ({"warmup_min_steps": 60, "warmup_min_s": 0.5}, 1, [0.001] * 1000, 504),
        # A few slow steps are enough if they agree.
        ({"warmup_min_steps": 50, "warmup_long_s": 5.0}, 1, [3.0] * 60, 4),
        ({"warmup_min_steps": 50, "warmup_long_s": 5.0}, 1, [1.5, 1.4, 1.3, 1.2] + [1.0] * 60, 8),
        # Two groups of 20 steps, or of two cycles.
        *(
            ({"warmup_min_steps": 1, "warmup_min_s": 0.0}, cycle_steps, [1.0] * 50, cycles)
            for cycle_steps, cycles in [(1, 40), (5, 8), (8, 6), (20, 4), (1000, 4)]
        ),
    ],
)
def test_when_a_warm_up_ends(effort: dict[str, Any], cycle_steps: int, samples: list[float], count: int) -> None:
    limits = Effort(**{"warmup_long_s": 1000.0, **effort})
    assert samples_until(lambda course: warmed_up(course, limits, cycle_steps), samples) == count


@pytest.mark.parametrize(
    ("effort", "sample_s", "count"),
    [
        ({"blocks_min": 35, "timed_min_s": 0.0, "timed_max_s": 1000.0}, 1.0, 40),
        ({"blocks_min": 30, "timed_min_s": 52.5, "timed_max_s": 1000.0}, 1.0, 60),
        ({"timed_max_s": 4.0}, 1.0, 4),
        ({"timed_max_s": 4.0}, 10.0, 2),
    ],
)
def test_when_a_timing_ends(effort: dict[str, Any], sample_s: float, count: int) -> None:
    assert samples_until(lambda course: timed_enough(course, Effort(**effort)), [sample_s] * 100) == count

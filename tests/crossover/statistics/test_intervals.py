from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crossover.statistics.intervals import (
    COMPARISONS,
    Interval,
    compared,
    mean_over_trials,
    paired_ratio,
    ratio_over_trials,
    share_over_trials,
    time_over_trials,
)


def ends(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_a_time_by_hand() -> None:
    """Medians 1, 2, 4 s: mean log = ln 2, standard error = ln 2 / sqrt(3), t(0.975, 2) = 4.302653."""
    found = time_over_trials([1.0, 2.0, 4.0])
    spread = math.log(2) / math.sqrt(3) * 4.302653
    assert found.mean == pytest.approx(2)
    assert ends(found) == pytest.approx((2 * math.exp(-spread), 2 * math.exp(spread)), rel=1e-6)


def test_a_difference_is_students() -> None:
    values = [0.004, -0.001, 0.002, 0.003, -0.0005]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert ends(mean_over_trials(values)) == pytest.approx((expected.low, expected.high))


def test_a_share_by_hand() -> None:
    """0.4, 0.5, 0.6: deviation 0.1, t(2) = 4.3027, half-width 4.3027 * 0.1 / sqrt(3) = 0.2484."""
    assert ends(share_over_trials([0.4, 0.5, 0.6])) == pytest.approx((0.2516, 0.7484), abs=1e-4)
    assert ends(share_over_trials([0.9, 1.0]))[1] == 1


@pytest.mark.parametrize("counts", [(3, 3), (5, 2)])
def test_a_ratio_is_welchs(counts: tuple[int, int]) -> None:
    random = np.random.default_rng(1)
    first, second = (np.exp(random.normal(mean, 0.05, count)) for mean, count in zip((0, 0.3), counts, strict=True))
    expected = stats.ttest_ind(np.log(second), np.log(first), equal_var=False).confidence_interval(0.95)
    found = ratio_over_trials(first.tolist(), second.tolist())
    assert found.mean == pytest.approx(math.exp(np.log(second).mean() - np.log(first).mean()))
    assert ends(found) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


def test_a_paired_ratio_knows_no_spread_that_both_values_share() -> None:
    """Trials of 1 and 100 s, each with twice as much: exactly 2, whatever trials differ."""
    found = paired_ratio([2.0, 200.0], [1.0, 100.0])
    assert (found.mean, *ends(found)) == pytest.approx((2, 2, 2))


def test_intervals_that_hold_together_are_wider() -> None:
    """With one degree of freedom t is Cauchy's, with quantiles tan(pi (p - 1/2)); p = 1 - 0.025 / 6."""
    found = paired_ratio([2.0, 8.0], [1.0, 1.0], together=6)
    assert math.log2(ends(found)[1]) == pytest.approx(2 + math.tan(math.pi * (0.5 - 0.025 / 6)))


def test_one_value_gives_no_interval_and_equal_ones_one_without_width() -> None:
    assert time_over_trials([0.5]) == Interval(pytest.approx(0.5))
    assert ratio_over_trials([1.0], [2.0, 3.0]).low is None
    assert ends(ratio_over_trials([0.1] * 3, [0.2] * 2)) == pytest.approx((2, 2))
    assert ends(mean_over_trials([0.25] * 3)) == (0.25, 0.25)


def test_the_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    found = [ends(time_over_trials(list(np.exp(random.normal(0, 0.1, 3))))) for _ in range(2000)]
    covered = sum(low <= 1 <= high for low, high in found)
    assert abs(covered / 2000 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize(
    ("low", "high", "margin", "word"),
    [
        (0.982, 1.019, 0.02, "equivalent"),
        (0.979, 1.01, 0.02, "inconclusive"),
        (1.005, 1.015, 0.02, "equivalent"),  # excludes 1, but by too little to matter
        (1.005, 1.015, 0.0, "faster"),
        (1.005, 1.021, 0.02, "faster"),
        (0.979, 0.995, 0.02, "slower"),
        (0.9, 1.2, 0.02, "inconclusive"),
        (None, None, 0.02, "single_trial"),
    ],
)
def test_two_sides_are_compared_by_the_interval_of_their_ratio(
    low: float | None, high: float | None, margin: float, word: str
) -> None:
    assert word in COMPARISONS
    assert compared(Interval(1.0, low, high), margin) == word


@pytest.mark.parametrize(
    ("sd", "trials", "difference", "word", "least", "most"),
    [
        (0.05, 3, 0.0, "slower", 0.005, 0.04),  # half of the 5 % of like sides that are told apart
        (0.003, 5, 0.0, "equivalent", 0.95, 1),
        (0.01, 3, math.log(1.1), "slower", 0.97, 1),
    ],
)
def test_sides_are_told_apart_as_often_as_they_should_be(
    sd: float, trials: int, difference: float, word: str, least: float, most: float
) -> None:
    """Processes scatter by `sd`, and the contender takes exp(difference) as long; 2000 comparisons."""
    random = np.random.default_rng(0)
    baselines = np.exp(random.normal(0, sd, (2000, trials))).tolist()
    contenders = np.exp(random.normal(difference, sd, (2000, trials))).tolist()
    words = [compared(ratio_over_trials(*sides), 0.02) for sides in zip(contenders, baselines, strict=True)]
    assert least < words.count(word) / 2000 <= most

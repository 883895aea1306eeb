from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crossover.compare.intervals import (
    COMPARISONS,
    ENERGY_RESOLUTION,
    Interval,
    SampleMean,
    compared,
    paired_ratio,
    ratio_of,
    ratio_of_intervals,
    share_over_trials,
    sure_signs,
    t_errors,
    time_over_trials,
)


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def test_a_time_by_hand() -> None:
    """For 1, 2 and 4 s: mean log = ln 2, standard error = ln 2 / sqrt(3), t(0.975, 2) = 4.302653."""
    interval = time_over_trials([1.0, 2.0, 4.0])
    spread = math.log(2) / math.sqrt(3) * 4.302653
    assert interval.mean == pytest.approx(2)
    assert ends(interval) == pytest.approx((2 * math.exp(-spread), 2 * math.exp(spread)), rel=1e-6)


def test_a_share_by_hand() -> None:
    """For 0.4, 0.5 and 0.6: standard deviation 0.1, half width 4.3027 * 0.1 / sqrt(3) = 0.2484."""
    assert ends(share_over_trials([0.4, 0.5, 0.6])) == pytest.approx((0.2516, 0.7484), abs=1e-4)
    assert ends(share_over_trials([0.9, 1.0]))[1] == 1


@pytest.mark.parametrize("counts", [(3, 3), (5, 2)])
def test_the_interval_of_a_ratio_is_that_of_welch(counts: tuple[int, int]) -> None:
    random = np.random.default_rng(1)
    first, second = (np.exp(random.normal(mean, 0.05, count)) for mean, count in zip((0, 0.3), counts, strict=True))
    expected = stats.ttest_ind(np.log(second), np.log(first), equal_var=False).confidence_interval(0.95)
    interval = ratio_of(SampleMean.of_times(first.tolist()), SampleMean.of_times(second.tolist()))
    assert interval.mean == pytest.approx(math.exp(np.log(second).mean() - np.log(first).mean()))
    assert ends(interval) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


def test_the_half_widths_of_a_series_agree_with_the_intervals_of_its_ratios() -> None:
    """Both are Welch's intervals, here of 3 and 2 trials, each as one of six simultaneous intervals."""
    first, second = SampleMean.of_times([1.0, 1.1, 1.3]), SampleMean.of_times([2.0, 2.1])
    low, high = ends(ratio_of(first, second, together=6))
    variance, fourth = (
        np.array([getattr(first, name) + getattr(second, name), math.nan]) for name in ("variance", "fourth")
    )
    assert t_errors(variance, fourth, together=6).tolist() == [pytest.approx(math.log(high / low) / 2), math.inf]


def test_a_paired_ratio_cancels_the_spread_that_both_values_share() -> None:
    """In trials of 1 and 100 s, one value is twice the other: the ratio is 2, without a spread."""
    interval = paired_ratio([2.0, 200.0], [1.0, 100.0]).exp_interval()
    assert (interval.mean, *ends(interval)) == pytest.approx((2, 2, 2))


def test_simultaneous_intervals_are_wider() -> None:
    """With one degree of freedom, t has Cauchy's distribution, with quantiles tan(pi (p - 1/2)); p = 1 - 0.025 / 6."""
    interval = paired_ratio([2.0, 8.0], [1.0, 1.0]).exp_interval(together=6)
    assert math.log2(ends(interval)[1]) == pytest.approx(2 + math.tan(math.pi * (0.5 - 0.025 / 6)))


def test_the_interval_of_equal_values_depends_on_their_resolution() -> None:
    """A resolution of 6 gives a standard error of 6 / sqrt(6), and t(0.975, 2) = 4.302653."""
    assert ends(SampleMean.of([25.0] * 3, 6).interval()) == pytest.approx(
        (25 - 4.302653 * math.sqrt(6), 25 + 4.302653 * math.sqrt(6))
    )
    low, high = ends(ratio_of(*(SampleMean.of_times([joules] * 3, ENERGY_RESOLUTION) for joules in (0.1, 0.2))))
    # t(0.975, 4) = 2.776445, by Welch's degrees of freedom of two equal variances
    assert (math.log(low / 2), math.log(high / 2)) == pytest.approx(
        (-2.776445 * 0.01 / math.sqrt(3), 2.776445 * 0.01 / math.sqrt(3))
    )
    # Paired, the errors of both values count too, with t(0.975, 2).
    low, high = ends(paired_ratio([0.2] * 3, [0.1] * 3, ENERGY_RESOLUTION).exp_interval())
    assert (math.log(low / 2), math.log(high / 2)) == pytest.approx(
        (-4.302653 * 0.01 / math.sqrt(3), 4.302653 * 0.01 / math.sqrt(3))
    )
    for interval in (
        time_over_trials([1.0] * 2),
        ratio_of(SampleMean.of_times([1e-3] * 5), SampleMean.of_times([2e-3] * 5)),
        paired_ratio([1.0] * 5, [2.0] * 5).exp_interval(),
        share_over_trials([0.0] * 5),
        share_over_trials([1.0] * 5),
    ):
        low, high = ends(interval)
        assert 1e-8 < high - low < 1e-2


@pytest.mark.parametrize(
    ("half_widths", "signs"),
    [
        ((0.1, 0.8, 0.5), [1, 0, -1]),
        ((0.1, math.nan, 0.5), [1, 0, -1]),
        ((0.1, math.nan, math.inf), [0, 1, -1]),  # one interval is too few, so leads of 2 or more count
        ((math.nan,) * 3, [0, 1, -1]),
    ],
)
def test_a_sign_is_significant_by_its_interval_or_in_single_trials_by_its_lead(
    half_widths: tuple[float, ...], signs: list[int]
) -> None:
    log_ratios = np.array([0.6, math.log(2.0), -1.0])
    assert sure_signs(log_ratios, np.array(half_widths)).tolist() == signs


@pytest.mark.parametrize(
    ("low", "high", "margin", "word"),
    [
        (0.979, 1.01, 0.02, "inconclusive"),
        (1.005, 1.015, 0.02, "equivalent"),  # excludes 1, but lies within the margin
        (1.005, 1.015, 0.0, "faster"),
        (1.005, 1.021, 0.02, "faster"),
        (0.979, 0.995, 0.02, "slower"),
        (None, None, 0.02, "single_trial"),
    ],
)
def test_two_sides_are_compared_by_the_interval_of_their_ratio(
    low: float | None, high: float | None, margin: float, word: str
) -> None:
    assert word in COMPARISONS
    assert compared(Interval(1.0, low, high), margin) == word


def test_the_ratio_of_two_intervals_by_hand() -> None:
    """On the log scale, half widths of 0.3 and 0.4 give 0.5; the upper end uses those on the relevant sides."""
    ratio = ratio_of_intervals(Interval(1, math.exp(-0.2), math.exp(0.3)), Interval(2, 2 * math.exp(-0.4), 9))
    assert (ratio.mean, ratio.low) == (2, pytest.approx(2 * math.exp(-0.5)))
    assert ratio.high == pytest.approx(2 * math.exp(math.hypot(math.log(4.5), 0.2)))
    assert ratio_of_intervals(Interval(1, 0.5, None), Interval(2, 1, 3)) == Interval(2)

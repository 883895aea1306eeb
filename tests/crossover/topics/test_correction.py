"""Holm's procedure, and the p-values that it takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crossover.compare.crossover_curve import advantages_of_cells
from crossover.compare.intervals import FALSE_PER_STUDY, SampleMean, holm


def rejected_by_adjusted_p_values(p_values: list[float]) -> int:
    """The number of hypotheses rejected by Holm's adjusted p-values, max over j <= i of (m - j + 1) p_(j)."""
    ordered = np.sort(p_values)
    adjusted = np.maximum.accumulate((len(ordered) - np.arange(len(ordered))) * ordered)
    return int((adjusted <= FALSE_PER_STUDY).sum())


def test_the_number_of_comparisons_left_is_that_of_holms_adjusted_p_values() -> None:
    draw = np.random.default_rng(0)
    for _ in range(300):
        p_values = (draw.random(draw.integers(1, 9)) ** draw.choice([1, 4, 9])).tolist()
        rejected = rejected_by_adjusted_p_values(p_values)
        together = holm(p_values)
        assert together == max(1, len(p_values) - rejected)
        assert sum(p_value <= FALSE_PER_STUDY / together for p_value in p_values) == rejected


def test_unknown_p_values_count_and_are_never_rejected() -> None:
    assert holm([math.nan, math.nan, 1e-9]) == 2
    assert holm([]) == 1


def test_equal_sides_are_told_apart_in_at_most_five_percent_of_families() -> None:
    """Families of six comparisons of two equal samples of three; 2,000 families, plus three standard errors."""
    draw = np.random.default_rng(1)
    wrong = 0
    for _ in range(2000):
        means = [SampleMean.of(draw.normal(size=3).tolist(), 0.0) for _ in range(12)]
        differences = [first - second for first, second in zip(means[::2], means[1::2], strict=True)]
        together = holm([difference.p_value() for difference in differences])
        wrong += any(
            (interval := difference.interval(together)).low > 0 or interval.high < 0 for difference in differences
        )
    assert wrong / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_a_p_value_is_that_of_scipys_t_test() -> None:
    values = [0.3, 0.1, 0.4, 0.2]
    expected = stats.ttest_1samp(values, 0.1).pvalue
    assert SampleMean.of(values, 0.0).p_value(0.1) == pytest.approx(expected)
    assert math.isnan(SampleMean.of([0.3], 0.0).p_value())


@pytest.mark.parametrize("together", [1, 2, 5])
def test_a_series_is_significant_somewhere_exactly_if_its_p_value_is(together: int) -> None:
    """The spread is shared over the sizes, so the p-value is that of the signs, not of a t test at each size."""
    draw = np.random.default_rng(2)
    found = set()
    for _ in range(60):
        cells = {float(size): (draw.normal(size=4), draw.normal(1.5, size=4)) for size in (1, 2, 4, 8)}
        advantages = advantages_of_cells(cells)
        is_significant = bool(np.any(replace(advantages, together=together).sure_signs()))
        assert is_significant is (advantages.p_value() <= FALSE_PER_STUDY / together)
        found.add(is_significant)
    assert found == {True, False}

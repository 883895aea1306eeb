"""Shared variances, compared with scipy's distributions and a numerically integrated posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from crossover.compare.intervals import CLOCK_RESOLUTION, SampleMean
from crossover.compare.shrinkage import MOST_PRIOR_FREEDOM, fit_prior, inverse_trigamma, with_shared_spread

UNEVEN = ([0.0, 0.1, 0.3], [1.0, 1.01, 1.01], [2.0, 2.3, 2.1, 2.9], [3.0, 3.001, 3.002], [4.0, 4.1, 4.5])
"""Cells whose spreads differ by far more than chance."""


def means(cells: Sequence[Sequence[float]]) -> list[SampleMean]:
    return [SampleMean.of(values, CLOCK_RESOLUTION) for values in cells]


def of_spreads(spreads: Sequence[float]) -> list[SampleMean]:
    """Cells of three trials with these standard deviations."""
    return means([[-spread, 0.0, spread] for spread in spreads])


@pytest.mark.parametrize("x", [0.02, 0.3, 1.0, 7.0, 400.0])
def test_inverse_trigamma_is_the_root_of_trigamma(x: float) -> None:
    assert inverse_trigamma(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-8)


def test_the_prior_has_the_moments_of_the_samples() -> None:
    """A sample variance over the common one is a ratio of two chi-squared means; scipy's loggamma has the moments of
    their logarithms.
    """
    freedom = np.array([len(values) - 1 for values in UNEVEN], float)
    variances = np.array([np.var(values, ddof=1) for values in UNEVEN])
    common, prior_freedom = fit_prior(variances, freedom)
    assert 0 < prior_freedom < math.inf
    expected = log_mean(freedom) - log_mean(prior_freedom) + math.log(common)
    deviations = np.log(variances) - expected
    assert deviations.mean() == pytest.approx(0, abs=1e-9)
    spread = stats.loggamma.var(freedom / 2) + stats.loggamma.var(prior_freedom / 2)
    assert deviations.var(ddof=1) == pytest.approx(spread.mean(), rel=1e-9)


def log_mean(freedom: Any) -> Any:
    """E[ln(chi-squared / freedom)]."""
    return stats.loggamma.mean(freedom / 2) + np.log(2 / freedom)


def test_samples_that_differ_by_chance_alone_are_pooled() -> None:
    variances, freedom = np.array([1.0, 2.0, 1.5]), np.array([2.0, 2.0, 5.0])
    assert fit_prior(variances, freedom) == (pytest.approx((2 * 1 + 2 * 2 + 5 * 1.5) / 9), math.inf)


def test_a_shared_variance_is_the_mean_of_the_posterior_precision() -> None:
    """The inverse of a variance has a scaled chi-squared prior; its posterior mean is the inverse shared variance."""
    cells = of_spreads([0.05, 0.1, 0.12, 0.09])
    common = np.mean([0.05**2, 0.1**2, 0.12**2, 0.09**2])
    prior = stats.gamma(MOST_PRIOR_FREEDOM / 2, scale=2 / (MOST_PRIOR_FREEDOM * common))

    def weight(precision: float) -> float:
        return float(prior.pdf(precision) * stats.chi2(2).pdf(2 * 0.05**2 * precision) * precision)

    whole = integrate.quad(weight, 0, 5000, epsabs=0)[0]
    mean = integrate.quad(lambda precision: precision * weight(precision), 0, 5000, epsabs=0)[0] / whole
    shared = with_shared_spread(cells, CLOCK_RESOLUTION)
    assert shared[0].variance == pytest.approx(1 / mean / 3, rel=1e-6)
    assert [cell.freedom for cell in shared] == [MOST_PRIOR_FREEDOM + 2] * 4
    assert [cell.mean for cell in shared] == [cell.mean for cell in cells]


def test_a_single_trial_gets_the_common_variance() -> None:
    cells = [*of_spreads([0.1, 0.1, 0.1]), SampleMean.of([5.0], CLOCK_RESOLUTION)]
    single = with_shared_spread(cells, CLOCK_RESOLUTION)[-1]
    assert single == SampleMean(5.0, pytest.approx(0.01), MOST_PRIOR_FREEDOM)


def test_freedom_is_at_most_that_of_all_cells() -> None:
    shared = with_shared_spread([*of_spreads([0.1, 0.1]), SampleMean.of([5.0], CLOCK_RESOLUTION)], CLOCK_RESOLUTION)
    assert [cell.freedom for cell in shared] == [4, 4, 4]
    few = with_shared_spread(means([[0.0, 0.1], [1.0, 1.1], [2.0]]), CLOCK_RESOLUTION)
    assert [cell.freedom for cell in few] == [2, 2, 2]


@pytest.mark.parametrize("cells", [[], [[1.0]], [[1.0], [2.0]], [[1.0, 1.1], [2.0], [3.0]]])
def test_fewer_than_two_repeated_cells_share_nothing(cells: list[list[float]]) -> None:
    before, after = means(cells), with_shared_spread(means(cells), CLOCK_RESOLUTION)
    assert repr(after) == repr(before)  # NaN is not equal to itself

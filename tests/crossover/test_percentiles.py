from __future__ import annotations

import pytest
from scipy import stats

from crossover.percentiles import TAIL, Percentile, interval_ranks, percentile_of


@pytest.mark.parametrize("percent", [1, 50, 90, 95, 99])
@pytest.mark.parametrize("count", [1, 5, 6, 50, 71, 72, 300, 367, 368, 662, 5000, 100_000])
def test_ranks_are_those_of_the_binomial_distribution(count: int, percent: int) -> None:
    """They are the narrowest with a probability of at most TAIL beyond either end, by scipy."""
    below = stats.binom(count, percent / 100)
    ranks = interval_ranks(count, percent)
    if below.cdf(0) > TAIL or below.sf(count - 1) > TAIL:
        assert ranks is None
        return
    assert ranks is not None
    low, high = ranks
    # The sample of rank k is above the percentile if and only if fewer than k samples are below it.
    assert below.cdf(low - 1) <= TAIL < below.cdf(low)
    assert below.sf(high - 1) <= TAIL < below.sf(high - 2)


def test_a_percentile_by_hand() -> None:
    """Of 11 samples, at most 1 is below the median with a probability of 12/2048 = 0.6 %, at most 2 with 3.3 %. Of 401
    samples, all are below the 99th percentile with a probability of 1.8 %, and at most 392 with 2.2 %.
    """
    assert percentile_of([7, 3, 10, 0, 1, 9, 2, 4, 8, 6, 5], 50) == Percentile(5.0, 1, 9)
    assert percentile_of([1.0, 2.0, 3.0, 4.0, 5.0], 50) is None
    assert percentile_of([], 50) is None
    assert percentile_of(range(401), 99) == Percentile(396, 392, 400)

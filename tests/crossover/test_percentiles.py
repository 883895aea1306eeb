from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crossover.percentiles import TAIL, Percentile, interval_ranks, percentile_of


@pytest.mark.parametrize("percent", [1, 50, 90, 95, 99])
@pytest.mark.parametrize("count", [1, 5, 6, 50, 71, 72, 300, 367, 368, 662, 5000, 100_000])
def test_ranks_are_those_of_the_binomial_distribution(count: int, percent: int) -> None:
    """The narrowest ranks with at most 2.5 % beyond either end, by scipy; none if there are too few samples for
    that.
    """
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
    """Of 11 samples, at most 1 is below the median with probability 12/2048 = 0.6 %, at most 2 with 67/2048 = 3.3 %.

    Of 401 samples, all are below the 99th percentile with probability 1.8 %, and at most 392 with 2.2 %.
    """
    assert percentile_of([7, 3, 10, 0, 1, 9, 2, 4, 8, 6, 5], 50) == Percentile(5.0, 1, 9)
    assert percentile_of([1.0, 2.0, 3.0, 4.0, 5.0], 50) is None
    assert percentile_of([], 50) is None
    many = [float(number) for number in range(401)]
    percentile = percentile_of(many, 99)
    assert percentile is not None
    assert percentile.value == 396
    assert (percentile.low, percentile.high) == (392, 400)


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_the_interval_has_its_nominal_coverage(percent: int) -> None:
    """Simulated with 2,000 draws of 400 exponential samples, for which a share of 95 % has a standard deviation of 0.5
    %.
    """
    rng = np.random.default_rng(percent)
    truth = -np.log(1 - percent / 100)
    intervals = [percentile_of(rng.exponential(size=400).tolist(), percent) for _ in range(2000)]
    covered = np.mean([interval is not None and interval.low <= truth <= interval.high for interval in intervals])
    assert 0.94 <= covered <= 0.985

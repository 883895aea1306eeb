"""Percentiles of samples, with intervals from order statistics.

For independent samples of a continuous distribution, the number of samples below the true percentile is binomially
distributed. So two of the sorted samples enclose the percentile with a known probability (H. A. David and H. N.
Nagaraja, "Order Statistics", 2003, section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TAIL = 0.025
"""Probability beyond each end of a two-sided 95 % interval."""

LATENCY_PERCENTS = (50, 95, 99)


@dataclass(frozen=True)
class Percentile:
    """A percentile with its 95 % interval."""

    value: float
    low: float
    high: float


def percentile_of(samples: Sequence[float], percent: int) -> Percentile | None:
    """The linearly interpolated percentile with its interval; None if there are too few samples for the interval."""
    ranks = interval_ranks(len(samples), percent)
    if ranks is None:
        return None
    ordered = sorted(samples)
    rank = (len(ordered) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    value = ordered[below] + (rank - below) * (ordered[above] - ordered[below])
    return Percentile(value, *(ordered[end - 1] for end in ranks))


def interval_ranks(count: int, percent: int) -> tuple[int, int] | None:
    """Ranks (from 1) of the sorted samples at the ends of a percentile's interval; None if there are too few samples.

    The 99th percentile needs at least 368 samples, the 95th 72, the median 6.
    """
    low, high = _outside(count, percent / 100), _outside(count, 1 - percent / 100)
    return (low, count + 1 - high) if low and high else None


def _outside(count: int, share: float) -> int:
    """The largest k with P(X < k) <= TAIL for X ~ Binomial(count, share)."""
    log_odds = math.log(share) - math.log1p(-share)
    log_term = count * math.log1p(-share)  # probability that no sample is below
    below, k = math.exp(log_term), 0
    while below <= TAIL:
        log_term += math.log((count - k) / (k + 1)) + log_odds
        k += 1
        below += math.exp(log_term)
    return k

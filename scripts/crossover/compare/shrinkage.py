"""Variances between trials, shared over the cells of a series by empirical Bayes.

A few trials estimate their variance poorly, and the cells of a series have similar variances. The true variances are
assumed to scatter around a common value. How much they scatter is estimated from how much the sample variances differ
beyond chance (Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", 2004; limma's `fitFDist` and `squeezeVar`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special  # its stats takes most of a second to import

from crossover.compare.intervals import Floats, SampleMean, reading_error

MOST_PRIOR_FREEDOM = 4
"""Maximum degrees of freedom of the common variance; chosen by simulation. For few cells of three trials each,
`fit_prior` returns infinity too often.
"""


def with_shared_spread(cells: Sequence[SampleMean], resolution: float) -> list[SampleMean]:
    """The same means, with variances and degrees of freedom from the trials of all cells of a series.

    A cell of one trial gets the common variance. A cell of several trials gets the mean of the common variance and its
    own, weighted by their degrees of freedom. Its own variance is the minimum, since a larger spread than in other
    cells may be real. If fewer than two cells have several trials, all are returned unchanged. `resolution` is as in
    `reading_error`.
    """
    freedom = np.array([cell.freedom for cell in cells], float)
    repeated = freedom > 0
    if repeated.sum() < 2:
        return list(cells)
    trials = freedom + 1
    variances = np.where(repeated, [cell.variance * count for cell, count in zip(cells, trials, strict=True)], 0.0)
    common, prior_freedom = fit_prior(variances[repeated], freedom[repeated])
    prior_freedom = min(prior_freedom, MOST_PRIOR_FREEDOM)
    shared = (prior_freedom * common + freedom * variances) / (prior_freedom + freedom)
    squared_errors = np.maximum(np.maximum(shared, variances) / trials, reading_error(resolution) ** 2)
    pooled = np.minimum(prior_freedom + freedom, freedom.sum())
    return [
        SampleMean(cell.mean, squared_error, total)
        for cell, squared_error, total in zip(cells, squared_errors.tolist(), pooled.tolist(), strict=True)
    ]


def fit_prior(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """Fit the common variance and its degrees of freedom to at least two sample variances.

    The fit matches the mean and the variance of their logarithms. If the sample variances differ no more than by
    chance, the common variance is the pooled one and its degrees of freedom are infinite.
    """
    half = freedom / 2
    logs = np.log(variances) - special.digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), math.inf
    prior_half = inverse_trigamma(excess)
    return math.exp(logs.mean() + special.digamma(prior_half) - math.log(prior_half)), 2 * prior_half


def inverse_trigamma(value: float) -> float:
    """The inverse of the trigamma function for a value above 0, by Newton's method (Smyth 2004, appendix)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x

"""Variances between trials, shared over the cells of a series by empirical Bayes.

A few trials say little about their own spread, and the cells of a series have similar ones. The variances are
assumed to scatter around a common value, by as much as they differ beyond chance (Smyth, "Linear models
and empirical Bayes methods for assessing differential expression in microarray experiments", 2004; limma's `fitFDist`
and `squeezeVar`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special  # its stats takes most of a second to import

from crossover.statistics.intervals import Floats, SampleMean, reading_error

MOST_PRIOR_FREEDOM = 4
"""Maximum degrees of freedom of the common variance; chosen by simulation. With few cells of three trials each, the
fit too often finds that cells differ by chance only.
"""


def with_shared_spread(cells: Sequence[SampleMean], resolution: float) -> list[SampleMean]:
    """The means of a series' cells, each with a variance and degrees of freedom from the trials of all cells.

    A cell of one trial gets the common variance. Any other cell gets the mean of the common variance and its own,
    weighted by their degrees of freedom, but no less than its own: a larger spread than at other sizes is real, due to
    a disturbance or the size. The degrees of freedom are at most those of all cells together. Unchanged where fewer
    than two cells have two trials. `resolution` is as in `SampleMean.of`.
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
    """The common variance and its degrees of freedom, from at least two sample variances with theirs, by the mean and
    variance of their logarithms. If the variances differ no more than by chance, the degrees of freedom are infinite
    and the variance is that of all samples pooled.
    """
    half = freedom / 2
    logs = np.log(variances) - special.digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), math.inf
    prior_half = inverse_trigamma(excess)
    return math.exp(logs.mean() + special.digamma(prior_half) - math.log(prior_half)), 2 * prior_half


def inverse_trigamma(value: float) -> float:
    """The argument at which the trigamma function has a value above 0, by Newton's method (Smyth 2004, appendix)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x

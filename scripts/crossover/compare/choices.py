"""The fastest of several cells that do the same work, the significance of its lead, and its selection bias.

With k cells, the k - 1 intervals of the fastest cell against the others are simultaneous (Bonferroni). In at most 2.5 %
of cases, a cell counts as significantly faster than all others although another cell is faster.

The smallest of several noisy means is too small on average, since it was chosen for being small (Smith and Winkler,
"The optimizer's curse", 2006). The expected bias is added to ln(seconds) of the chosen cell's trials. It is computed
for means with normal distributions around the measured means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special  # scipy.stats takes most of a second to import

from crossover.compare.intervals import (
    CLOCK_RESOLUTION,
    FASTER,
    Floats,
    Interval,
    SampleMean,
    compared,
    ratio_of,
    reading_error,
)

POINTS = 601
REACH = 6.0
"""Half width of the range of integration around the smallest mean, in units of the largest standard error."""

SHRINKAGE = 4
"""Degrees of freedom of the pooled variance towards which a cell's variance is shrunk; chosen by simulation."""
SURE = 0.99
"""Minimum probability of being the fastest for a choice to count as certain."""


@dataclass(frozen=True)
class Choice:
    """The cell with the smallest mean, compared with others."""

    chosen: int
    baseline: int
    """The index of the cell with which cell `chosen` is compared."""
    ratio: Interval
    """Time of the baseline over time of the chosen cell, with its simultaneous 95 % interval."""
    leads: bool
    """True if the chosen cell is significantly faster than each of the others."""


def choose(cells: Sequence[SampleMean], fixed: int | None = None, together: int = 1) -> Choice:
    """Compare the fastest of two or more cells with cell `fixed`.

    If `fixed` is None or itself the fastest, the baseline is the next fastest cell. `together` is the number of
    comparisons of which the choice is one.
    """
    chosen, following, *_ = sorted(range(len(cells)), key=lambda index: cells[index].mean)
    ratios = {
        index: ratio_of(cells[chosen], cell, together * (len(cells) - 1))
        for index, cell in enumerate(cells)
        if index != chosen
    }
    baseline = following if fixed is None or fixed == chosen else fixed
    leads = all(compared(ratio) == FASTER for ratio in ratios.values())
    return Choice(chosen, baseline, ratios[baseline], leads)


@dataclass(frozen=True)
class Fastest:
    """The cell with the smallest mean, corrected for selection bias."""

    index: int
    logs: Floats
    """ln(seconds) of its trials, corrected for selection bias; only their mean and spread are meaningful."""
    selection_bias: float
    """Selection bias in ln(seconds); 0 if no cell has two trials."""
    chances: Floats
    """For each cell, the probability of being the fastest."""


def fastest(cells: Sequence[Floats]) -> Fastest:
    """The fastest of several cells. `cells` has ln(seconds) of the trials of each cell, at least one."""
    means = np.array([logs.mean() for logs in cells])
    index = int(means.argmin())
    spreads = _spreads(cells)
    chances, selection_bias = expected_minimum(means, spreads / np.sqrt([len(logs) for logs in cells]))
    logs, scale = cells[index], 1.0
    if len(logs) > 1 and chances[index] < SURE and (deviation := float(logs.std(ddof=1))) > 0:
        scale = max(1.0, spreads[index] / deviation)
    return Fastest(index, means[index] + selection_bias + scale * (logs - means[index]), selection_bias, chances)


def _spreads(cells: Sequence[Floats]) -> Floats:
    """Standard deviations between trials, shrunk towards the pooled one, since three trials give a poor estimate."""
    freedom = np.array([len(logs) - 1 for logs in cells])
    squares = np.array([((logs - logs.mean()) ** 2).sum() for logs in cells])
    if not freedom.any():
        return np.zeros(len(cells))
    spreads: Floats = np.sqrt((squares + SHRINKAGE * squares.sum() / freedom.sum()) / (freedom + SHRINKAGE))
    return np.maximum(spreads, reading_error(CLOCK_RESOLUTION))


def expected_minimum(means: Floats, errors: Floats) -> tuple[Floats, float]:
    """For each cell, the probability that its draw from a normal distribution around its mean is the smallest.

    The second value is the selection bias: E[mean of the cell with the smallest draw] - E[smallest draw].
    """
    if len(means) == 1 or not errors.any():
        return np.eye(len(means))[means.argmin()], 0.0
    x = means.min() + np.linspace(-REACH, REACH, POINTS) * errors.max()
    scores = (x - means[:, None]) / errors[:, None]
    density = -(scores**2) / 2 - np.log(errors[:, None] * math.sqrt(2 * math.pi))
    log_survival = np.asarray(special.log_ndtr(-scores))
    drawn = np.exp(density + log_survival.sum(axis=0) - log_survival) * (x[1] - x[0])
    chances = np.sum(drawn, axis=1)
    return chances, float(chances @ means - np.sum(drawn * x))

"""The fastest of several cells that do the same work, the significance of its lead, and its selection bias.

A choice among many is significant only by simultaneous intervals. With k cells, the k - 1 intervals of the chosen cell
against the others hold together (Bonferroni): with a chance of at most 2.5 % it is called faster than a cell that is
at least as fast.

The smallest of several noisy means is too small on average, since it was chosen for being small (Smith and Winkler,
"The optimizer's curse", 2006). This bias is estimated by its expectation over means drawn from normal distributions
around the measured ones, and is added to the trials of the chosen cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special  # scipy.stats takes most of a second to import

from crossover.statistics.intervals import (
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
"""Range, in standard errors around the smallest mean, over which the distribution of the minimum is integrated."""

SHRINKAGE = 4
"""Degrees of freedom given to the pooled spread when it is combined with a cell's; chosen by simulation."""
SURE = 0.99
"""Chance of the chosen cell above which the choice counts as certain."""


@dataclass(frozen=True)
class Choice:
    """The indices of the cell with the smallest mean and of the cell with which it is compared."""

    chosen: int
    baseline: int
    ratio: Interval
    """Time of the baseline over time of the chosen cell, with its simultaneous 95 % interval."""
    leads: bool
    """Whether the chosen cell is significantly faster than each of the others."""


def choose(cells: Sequence[SampleMean], fixed: int | None = None) -> Choice:
    """The fastest of at least two cells, compared with cell `fixed`. If `fixed` is None or itself the fastest, the
    comparison is with the second fastest.
    """
    chosen, following, *_ = sorted(range(len(cells)), key=lambda index: cells[index].mean)
    ratios = {
        index: ratio_of(cells[chosen], cell, len(cells) - 1) for index, cell in enumerate(cells) if index != chosen
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
    """Selection bias in ln(seconds); 0 where no cell has two trials."""
    chances: Floats
    """For each cell, the chance that its mean would be the smallest of new trials."""


def fastest(cells: Sequence[Floats]) -> Fastest:
    """The fastest of several cells, each given by ln(seconds) of at least one trial.

    Where the choice is uncertain, the corrected trials have at least the shrunk spread.
    """
    means = np.array([logs.mean() for logs in cells])
    index = int(means.argmin())
    spreads = _spreads(cells)
    chances, selection_bias = expected_minimum(means, spreads / np.sqrt([len(logs) for logs in cells]))
    logs, scale = cells[index], 1.0
    if len(logs) > 1 and chances[index] < SURE and (deviation := float(logs.std(ddof=1))) > 0:
        scale = max(1.0, spreads[index] / deviation)
    return Fastest(index, means[index] + selection_bias + scale * (logs - means[index]), selection_bias, chances)


def _spreads(cells: Sequence[Floats]) -> Floats:
    """Standard deviation between the trials of each cell, shrunk to the pooled one: three trials alone give a poor
    estimate."""
    freedom = np.array([len(logs) - 1 for logs in cells])
    squares = np.array([((logs - logs.mean()) ** 2).sum() for logs in cells])
    if not freedom.any():
        return np.zeros(len(cells))
    spreads: Floats = np.sqrt((squares + SHRINKAGE * squares.sum() / freedom.sum()) / (freedom + SHRINKAGE))
    return np.maximum(spreads, reading_error(CLOCK_RESOLUTION))


def expected_minimum(means: Floats, errors: Floats) -> tuple[Floats, float]:
    """The probability of each of several normal means to be the smallest, and the selection bias.

    The selection bias is E[mean of the chosen] - E[smallest draw].
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

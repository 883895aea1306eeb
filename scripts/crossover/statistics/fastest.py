"""The fastest of several ways to compute the same, and how much faster it looks than it is.

The smallest of several noisy means is too small on average, since it was chosen for being small (Smith and Winkler,
"The optimizer's curse", 2006). How much is estimated by drawing the means anew from normal distributions around the
measured ones, and is added to the chosen way's trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from crossover.statistics.intervals import CLOCK_RESOLUTION, Floats, reading_error

POINTS = 601
REACH = 6.0
"""Standard errors around the smallest mean within which the distribution of the minimum is integrated."""

SHRINKAGE = 4
"""Degrees of freedom that the spread of all ways has beside a way's own; chosen by simulation."""
SURE = 0.99
"""Chance of the chosen way from which on the choice is beyond doubt."""


@dataclass(frozen=True)
class Fastest:
    """The way with the smallest mean."""

    place: int
    """Its place among the ways."""
    logs: Floats
    """ln(seconds) of its trials, without what they owe to the choice; only their mean and spread count."""
    optimism: float
    """That, in ln(seconds): how much smaller its mean looks; 0 where no way has two trials."""
    chances: Floats
    """For each way, the chance that its mean would be the smallest of new trials."""


def fastest(ways: Sequence[Floats]) -> Fastest:
    """The fastest of ways, each given by ln(seconds) of at least one trial.

    Where the choice is in doubt, the trials of the chosen way lie at least as far apart as its shrunk spread says.
    """
    means = np.array([logs.mean() for logs in ways])
    place = int(means.argmin())
    spreads = _spreads(ways)
    chances, optimism = choice(means, spreads / np.sqrt([len(logs) for logs in ways]))
    logs, apart = ways[place], 1.0
    if len(logs) > 1 and chances[place] < SURE and (own := float(logs.std(ddof=1))) > 0:
        apart = max(1.0, spreads[place] / own)
    return Fastest(place, means[place] + optimism + apart * (logs - means[place]), optimism, chances)


def _spreads(ways: Sequence[Floats]) -> Floats:
    """Standard deviation between the trials of each way, shrunk to that of all: three trials alone say little."""
    freedom = np.array([len(logs) - 1 for logs in ways])
    squares = np.array([((logs - logs.mean()) ** 2).sum() for logs in ways])
    if not freedom.any():
        return np.zeros(len(ways))
    found: Floats = np.sqrt((squares + SHRINKAGE * squares.sum() / freedom.sum()) / (freedom + SHRINKAGE))
    return np.maximum(found, reading_error(CLOCK_RESOLUTION))


def choice(means: Floats, errors: Floats) -> tuple[Floats, float]:
    """How often each of several normal means is drawn as the smallest, and how far below its own mean it then lies.

    The second value is E[mean of the chosen] - E[smallest draw].
    """
    if len(means) == 1 or not errors.any():
        return np.eye(len(means))[means.argmin()], 0.0
    x = means.min() + np.linspace(-REACH, REACH, POINTS) * errors.max()
    scores = (x - means[:, None]) / errors[:, None]
    density = -(scores**2) / 2 - np.log(errors[:, None] * math.sqrt(2 * math.pi))
    others = np.asarray(special.log_ndtr(-scores))
    drawn = np.exp(density + others.sum(axis=0) - others) * (x[1] - x[0])
    chances = np.sum(drawn, axis=1)
    return chances, float(chances @ means - np.sum(drawn * x))

"""Common ways to a crossover with an interval, for the simulation to hold against ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from crossover.statistics.crossover_cells import Floats

Samples = Mapping[float, tuple[Floats, Floats]]
"""ln(seconds) of each trial's samples, trial by sample, by size in ascending order; the baseline's first."""

RESAMPLES = 200


@dataclass(frozen=True)
class Estimate:
    """A crossover as a method gives it."""

    status: str
    size: float | None = None
    low: float | None = None
    high: float | None = None


def medians(samples: Samples) -> dict[float, tuple[Floats, Floats]]:
    """ln of the trials' medians, as the estimator takes them."""
    return {size: (np.median(base, 1), np.median(own, 1)) for size, (base, own) in samples.items()}


def steps_bootstrap(samples: Samples, generator: np.random.Generator) -> Estimate:
    """Log-log interpolation with a percentile interval, as if all samples of a cell were independent of each other."""
    advantage = np.zeros((len(samples), RESAMPLES))
    for row, sides in zip(advantage, samples.values(), strict=True):
        for sign, side in zip((1, -1), sides, strict=True):
            drawn = generator.integers(side.size, size=(RESAMPLES, side.size))
            row += sign * side.ravel()[drawn].mean(axis=1)
    roots = [_first_root(np.array([*samples]), column) for column in advantage.T]
    found = [root for root in roots if root is not None]
    if len(found) < RESAMPLES / 2:
        return Estimate("undecided")
    return Estimate("bracketed", *(float(value) for value in np.quantile(found, [0.5, 0.025, 0.975])))


def parametric_fit(samples: Samples) -> Estimate:
    """Where a + b n^c, fitted to either side's cells, cross; the interval follows from the fits' covariance."""
    sizes = np.array([*samples])
    points = np.geomspace(sizes[0], sizes[-1], 400)
    try:
        (base, base_variance), (own, own_variance) = (
            _fit(sizes, np.array([np.median(sides[side], 1).mean() for sides in samples.values()]), points)
            for side in (0, 1)
        )
    except (RuntimeError, ValueError, np.linalg.LinAlgError):
        return Estimate("undecided")
    root = _first_root(points, base - own)
    if root is None:
        return Estimate("undecided")
    within = points[np.abs(base - own) <= 1.96 * np.sqrt(base_variance + own_variance)]
    return Estimate("bracketed", root, float(min([*within, root])), float(max([*within, root])))


def first_win(samples: Samples) -> Estimate:
    """The first measured size at which the contender is ahead, with the gap before it for an interval."""
    sizes = [*samples]
    ahead = [float(np.median(base, 1).mean() - np.median(own, 1).mean()) > 0 for base, own in samples.values()]
    if True not in ahead or ahead[0]:
        return Estimate("undecided")
    first = ahead.index(True)
    return Estimate("bracketed", sizes[first], sizes[first - 1], sizes[first])


def others(generator: np.random.Generator) -> dict[str, Callable[[Samples], Estimate]]:
    """The common methods by name."""
    return {
        "steps_bootstrap": lambda samples: steps_bootstrap(samples, generator),
        "parametric_fit": parametric_fit,
        "first_win": first_win,
    }


def _first_root(sizes: Floats, advantage: Floats) -> float | None:
    """The first change of sign from behind to ahead, by a straight line in the logarithms."""
    changes = np.flatnonzero((advantage[:-1] <= 0) & (advantage[1:] > 0))
    if not len(changes):
        return None
    at = int(changes[0])
    share = advantage[at] / (advantage[at] - advantage[at + 1])
    return math.exp(float(np.log(sizes[at]) + share * np.log(sizes[at + 1] / sizes[at])))


def _fit(sizes: Floats, logs: Floats, points: Floats) -> tuple[Floats, Floats]:
    """ln(a + b n^c) at the points, and its variance; all parameters positive, fitted by their logarithms."""

    def model(n: Floats, a: float, b: float, c: float) -> Floats:
        return np.logaddexp(a, b + math.exp(c) * np.log(n))

    start = (float(logs[0]) - 0.7, float(logs[-1]) - 1.0 * math.log(float(sizes[-1])), 0.0)
    best, covariance = optimize.curve_fit(model, sizes, logs, start, bounds=([-20, -20, -3], [20, 20, 1.5]))
    jacobian = np.stack(
        [(model(points, *(best + step)) - model(points, *(best - step))) / 2e-5 for step in np.eye(3) * 1e-5], axis=1
    )
    return model(points, *best), np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian)

"""From trials to the contender's advantage at each size: its mean, and what the trials say about its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

MOST_WRONG = 0.04
"""Most chance that any size at all of a line gets a sign that is sure and wrong."""


@dataclass(frozen=True)
class Advantages:
    """L = ln(baseline time) - ln(contender time) at every size that both sides have, sizes ascending."""

    sizes: Floats
    mean: Floats
    variance: Floats
    """Of the mean; NaN where a side has fewer than two trials."""
    fourth: Floats
    """Sum over both sides of (variance of the side's mean)^2 / (trials - 1); freedom = variance^2 / fourth."""
    incomplete: tuple[float, ...]
    """Sizes at which a side is missing."""

    @property
    def known(self) -> bool:
        """Whether the trials tell the uncertainty at enough sizes to speak of sure signs: two, or the only one."""
        return int(np.isfinite(self.variance).sum()) >= min(2, len(self.sizes))

    def sure_signs(self) -> Floats:
        """-1, 0 or 1 at each size: the sign of L where the trials leave no doubt about it.

        Each size has the level MOST_WRONG / sizes on either side (Bonferroni), so that it does not matter at how many
        sizes one looks; with one or two sizes that of three, which is stricter than the 95 % set. Where `known` is
        false, the sign itself.
        """
        if not self.known:
            return np.sign(self.mean)
        doubt = t_errors(self.variance, self.fourth, 1 - MOST_WRONG / max(3, len(self.sizes)))
        return np.where(np.abs(self.mean) > doubt, np.sign(self.mean), 0.0)


def t_errors(variance: Floats, fourth: Floats, quantile: float) -> Floats:
    """t quantile times standard error, with Welch's degrees of freedom; infinite where the variance is NaN."""
    freedom = np.divide(variance**2, fourth, out=np.ones_like(variance), where=fourth > 0)
    return np.where(np.isnan(variance), np.inf, special.stdtrit(freedom, quantile) * np.sqrt(variance))


def advantages_of_table(measurements: pd.DataFrame, baseline: str, contender: str) -> Advantages:
    """The advantages in a table with columns size, side, trial and step_time_s (in seconds; NaN, 0 or infinity where a
    trial gave none).

    Several rows of one trial are one process, and count as one: by the mean of their logarithms.
    """
    table = measurements[measurements["side"].isin([baseline, contender])]
    seconds = table["step_time_s"].to_numpy(float, na_value=np.nan)
    logs = np.full(len(seconds), np.nan)
    good = np.isfinite(seconds) & (seconds > 0)
    logs[good] = np.log(seconds[good])
    keys = [table["size"].to_numpy(float), (table["side"] == contender).to_numpy(bool), table["trial"].to_numpy()]
    trials = pd.Series(logs).groupby(keys, dropna=False).mean()
    sizes, sides = (trials.index.get_level_values(level).to_numpy() for level in (0, 1))
    logs = trials.to_numpy()
    order = np.lexsort((logs, sides, sizes))  # so that the order of rows cannot change the last digit
    sizes, sides, logs = sizes[order], sides[order], logs[order]
    ends = np.flatnonzero(np.diff(sizes, append=np.inf))
    cells = {}
    for start, end in zip(np.concatenate([[0], ends[:-1] + 1]), ends + 1, strict=True):
        own, contends = logs[start:end], sides[start:end]
        good = ~np.isnan(own)
        cells[float(sizes[start])] = own[good & ~contends], own[good & contends]
    return advantages_of_cells(cells)


def advantages_of_cells(cells: Mapping[float, tuple[Floats, Floats]]) -> Advantages:
    """The advantages from ln(seconds) of the trials of both sides, the baseline's first, by size in ascending order."""
    complete = {size: sides for size, sides in cells.items() if all(map(len, sides))}
    rows = [_advantage(*sides) for sides in complete.values()]
    mean, variance, fourth = np.array(rows, float).reshape(-1, 3).T
    incomplete = tuple(size for size in cells if size not in complete)
    return Advantages(np.array([*complete], float), mean, variance, fourth, incomplete)


def _advantage(baseline: Floats, contender: Floats) -> tuple[float, float, float]:
    means, variances, fourths = zip(*(_moments(logs) for logs in (baseline, contender)), strict=True)
    return means[0] - means[1], sum(variances), sum(fourths)


def _moments(logs: Floats) -> tuple[float, float, float]:
    """Mean, variance of the mean, and the latter squared over its degrees of freedom; NaN where there are none."""
    count = len(logs)
    mean = float(logs.sum()) / count
    if count < 2:
        return mean, np.nan, np.nan
    apart = logs - mean
    variance = float(apart @ apart) / (count - 1) / count
    return mean, variance, variance**2 / (count - 1)

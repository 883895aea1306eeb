"""Steps that are not alike: the cycle in which they repeat, and the time of a step from unlike blocks.

The median over blocks ignores disturbances, and is right if blocks are alike. Steps that differ, such as those of
accumulated gradients or of a loader's bursts, are given by their mean: blocks are whole cycles if the warm-up shows a
cycle; otherwise the mean over blocks is taken if their differences are the step's own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

CYCLES_MIN = 3
"""Minimum number of cycles in the samples from which a cycle is found."""
LAST_SAMPLES = 480
"""Number of samples in which a cycle is looked for."""
EXPLAINED_MIN = 0.6
"""Minimum share of the samples' deviations (absolute, of logarithms) that a cycle explains. Noise of 20 to
480 samples gave a cycle in 0 to 3 % of simulated series."""
UNLIKE_SHARE = 0.05
"""Minimum relative difference between the positions of a cycle, or from the median for a block to be unlike."""
UNLIKE_BLOCKS = 3
"""Minimum number of unlike blocks; fewer may be disturbances."""
CLUMPED = 0.3
"""Autocorrelation of adjacent blocks above which their differences come in phases, as disturbances do."""
UNEVEN_SHARE = 0.1
"""Relative difference of mean and median over blocks above which a trial is flagged and goes on."""


def cycle_of(samples_s: Sequence[float]) -> int:
    """The number of samples after which their times repeat; 1 if they do not, or if all are alike."""
    import numpy as np  # not needed by the supervising process, which imports this module too

    logs = np.log(np.maximum(samples_s[-LAST_SAMPLES:], 1e-9))
    total = np.abs(logs - np.median(logs)).sum()
    for length in range(2, len(logs) // CYCLES_MIN + 1):
        cycles = logs[len(logs) % length :].reshape(-1, length)
        medians = np.median(cycles, axis=0)
        left = np.abs(cycles - medians).sum()
        if np.ptp(medians) > math.log1p(UNLIKE_SHARE) and left <= (1 - EXPLAINED_MIN) * total:
            return length
    return 1


def unevenness(samples_s: Sequence[float]) -> float:
    """Relative difference of mean and median."""
    return abs(statistics.fmean(samples_s) / statistics.median(samples_s) - 1)


def differ_by_themselves(
    samples_s: Sequence[float], cpu_s: Sequence[float], waits: bool, queued_s: float = 0.0
) -> bool:
    """True if blocks differ because their steps do, and not because other work disturbs some of them.

    That is so if several blocks differ, not in phases, and the process's CPU time (`cpu_s` of each block) differs with
    them. Steps that wait, as for a loader (`waits`), need no CPU time meanwhile. While one of several threads waits for
    a core, the others spin, so CPU time cannot tell; therefore `queued_s`, the time for which the process's threads
    waited for a core per step of a block, summed over the blocks, must not explain most of what blocks take beyond the
    median.
    """
    median_s = statistics.median(samples_s)
    if queued_s > math.fsum(max(0.0, sample_s - median_s) for sample_s in samples_s) / 2:
        return False
    ratios = [sample_s / median_s for sample_s in samples_s]
    sides = [(ratio > 1 + UNLIKE_SHARE) - (ratio < 1 / (1 + UNLIKE_SHARE)) for ratio in ratios]
    if sum(map(abs, sides)) < UNLIKE_BLOCKS or statistics.correlation(sides[:-1], sides[1:]) > CLUMPED:
        return False
    return waits or (min(cpu_s) > 0 and unevenness(cpu_s) >= unevenness(samples_s) / 2)

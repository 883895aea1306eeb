"""Flags of a cell, from the times, the drifts and the flags of its trials.

A flag describes the cell. More trials make it more certain, and not more frequent: no flag depends on the largest or
smallest of the trials, or on a single one of many.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from scipy import special  # its stats takes most of a second to import

from crossover.compare.intervals import Floats, SampleMean

SPREAD = 0.2
"""Standard deviation of ln(time) between trials above which they differ. On quiet hosts, 90 % of cells have at most
0.115; on shared hosts, the cells of a device had 0.10 to 0.21 together."""
SPREAD_CONFIDENCE = 0.99
"""One-sided, since a run has dozens of cells."""

GROUPS_APART = 1.3
"""Minimum ratio of the times of two groups of trials."""
GROUPS_DEVIATIONS = 6
"""Minimum distance between the groups, in standard deviations within them. Trials that scatter around one time rarely
reach it (docs/explanation/trust.md)."""
GROUP_TRIALS = 3
"""Minimum number of trials in a group. Two trials may be close by chance."""

DRIFT = 0.05
"""Relative change within a trial above which a cell's mean drift counts."""
DRIFT_CONFIDENCE = 0.95
"""One-sided."""

SHARE = 3
"""A flag of trials is one of the cell if more than one in this many of the cell's trials have it."""

ONCE = ("not_checked", "incomplete", "cast")
"""Flags that one trial is enough for. The check and most passes after the timing are made in a cell's first trial only,
and a model that was built in another precision is so in each trial."""


def cell_flags(times_s: Sequence[float], flags: Sequence[Collection[str]], drifts: Sequence[float] = ()) -> list[str]:
    """The flags of a cell, in alphabetical order, from its ok trials.

    `flags` has those of each trial. `drifts` has the drift of each trial whose samples are known, as in `drift_of`.
    """
    counts = Counter(flag for of_trial in flags for flag in set(of_trial))
    raised = {flag for flag, count in counts.items() if flag in ONCE or SHARE * count > len(flags)}
    raised.discard("trials_differ")  # a reference of an older version has it on its trials
    logs = np.log(np.array(times_s, float))
    if is_spread(logs) or has_two_groups(logs):
        raised.add("trials_differ")
    if drifts_alike(np.log(np.array(drifts, float))):
        raised.add("drift")
    return sorted(raised)


def is_spread(logs: Floats) -> bool:
    """Whether the standard deviation of ln(time) between trials is significantly above SPREAD."""
    freedom = len(logs) - 1
    if freedom < 1:
        return False
    least = float(logs.var(ddof=1)) * freedom / float(special.chdtri(freedom, 1 - SPREAD_CONFIDENCE))
    return least > SPREAD**2


def has_two_groups(logs: Floats) -> bool:
    """Whether the trials, as ln(time), are of two groups that are far apart, as on a host with two states."""
    ordered, count = np.sort(logs), len(logs)
    splits = [(ordered[:cut], ordered[cut:]) for cut in range(GROUP_TRIALS, count - GROUP_TRIALS + 1)]
    if not splits:
        return False
    squares, distance = min(
        (len(low) * float(low.var()) + len(high) * float(high.var()), float(high.mean() - low.mean()))
        for low, high in splits
    )
    return distance > max(math.log(GROUPS_APART), GROUPS_DEVIATIONS * math.sqrt(squares / (count - 2)))


def drifts_alike(logs: Floats) -> bool:
    """Whether the mean of the logarithms of at least two trials' drifts is significantly above DRIFT, up or down."""
    if len(logs) < 2:
        return False
    mean = SampleMean.of(logs.tolist(), 0.0)
    least = abs(mean.mean) - float(special.stdtrit(mean.freedom, DRIFT_CONFIDENCE)) * math.sqrt(mean.variance)
    return least > math.log1p(DRIFT)

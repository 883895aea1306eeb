"""The comparisons that a study states, corrected together by Holm's procedure.

A crossover, its payback and a claim about it are one comparison, and so are a mistake in measuring latencies and a
claim about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from crossover.statistics.intervals import CONFIDENCE

FALSE_PER_STUDY = 1 - CONFIDENCE
"""Maximum probability that a study states a difference that does not exist."""


def holm(p_values: Iterable[float]) -> int:
    """The number of comparisons, at least 1, for which to correct each of them.

    Holm's procedure ("A simple sequentially rejective multiple test procedure", 1979) rejects the hypotheses with the
    smallest p-values, one after another, as long as p <= FALSE_PER_STUDY / (number of those left). An interval that is
    corrected for the number of those left at the end excludes a hypothesis exactly if the procedure rejects it. A
    p-value of NaN is never rejected.
    """
    ordered = sorted(1.0 if math.isnan(p_value) else p_value for p_value in p_values)
    rejected = 0
    while rejected < len(ordered) and ordered[rejected] <= FALSE_PER_STUDY / (len(ordered) - rejected):
        rejected += 1
    return max(1, len(ordered) - rejected)

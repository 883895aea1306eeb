"""The drift of a trial's samples, for the flag of a trial and that of its cell."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def drift_of(samples: Sequence[float]) -> float:
    """Median of the last third of at least one sample, over that of the first third."""
    third = max(1, len(samples) // 3)
    return statistics.median(samples[-third:]) / statistics.median(samples[:third])

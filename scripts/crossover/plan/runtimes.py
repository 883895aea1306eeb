"""The minutes that a job asks a scheduler for."""

from __future__ import annotations

import math

START_MIN = 6
"""For a process to start from a cold network file system, and to end."""


def runtime_min(time_limit_s: float, processes: int = 1) -> int:
    """Minutes for a job that has so many measuring processes, one after the other, each with its own time limit."""
    return processes * (math.ceil(time_limit_s / 60) + START_MIN)

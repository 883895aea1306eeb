"""Seconds that a measuring process spends in each phase."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil


def process_age_s() -> float:
    """Seconds since this process started."""
    stat = Path("/proc/self/stat")
    if stat.is_file():  # psutil is off by up to a second here, since it uses the boot time
        started_s = int(stat.read_text(encoding="ascii").rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    return time.time() - psutil.Process().create_time()


class Phases:
    """Seconds of the phases so far; a phase begins where the one before it ended.

    `age_s` is the age of the process at the end of the first phase, the imports.
    """

    def __init__(self, age_s: float, clock_s: Callable[[], float] = time.perf_counter) -> None:
        self.clock_s = clock_s
        self.spent_s = {"import": age_s}
        self._last_s = clock_s()

    def end(self, name: str) -> None:
        """End a phase and give it its name."""
        now_s = self.clock_s()
        self.spent_s[name] = now_s - self._last_s
        self._last_s = now_s

    def to_json(self) -> str:
        return json.dumps({name: round(seconds, 4) for name, seconds in self.spent_s.items()})

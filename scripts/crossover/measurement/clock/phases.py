"""What a measuring process spends its time on, phase by phase."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Phases:
    """Seconds of each phase so far; a phase begins where the one before it ended."""

    age_s: float
    """Seconds since the process started, as the first phase ends."""
    clock_s: Callable[[], float] = time.perf_counter
    spent_s: dict[str, float] = field(init=False)
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.spent_s = {"import": self.age_s}
        self._last_s = self.clock_s()

    def end(self, name: str) -> None:
        """End a phase and give it its name."""
        now_s = self.clock_s()
        self.spent_s[name] = now_s - self._last_s
        self._last_s = now_s

    def to_json(self) -> str:
        return json.dumps({name: round(seconds, 4) for name, seconds in self.spent_s.items()})

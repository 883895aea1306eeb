"""The host's own work in a step: what it does while no operator of torch runs.

Python between two operators takes up to some ten microseconds and belongs to calling them. A longer gap is work of its
own: an environment, NumPy, sampling, a tokenizer, a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

CALLING_S = 1e-4
"""The part of each gap that counts as calling the next operator."""

STEPS = 5
"""Steps of which the least counts: a stall of the machine is no work."""


class OperatorGaps(TorchDispatchMode):
    """Sums up the time between operators, less CALLING_S for each of them."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.clock_s = clock_s
        self.seconds = 0.0
        self.left_s = clock_s()
        """When the last operator ended, or the step began."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.end_gap()
        result = func(*args, **(kwargs or {}))
        self.left_s = self.clock_s()
        return result

    def end_gap(self) -> None:
        """Add the time since the last operator."""
        self.seconds += max(0.0, self.clock_s() - self.left_s - CALLING_S)


def host_work_s(step: Callable[[], None], clock_s: Callable[[], float] = time.perf_counter) -> float:
    """The least over a few steps of the seconds that the host works beside torch's operators."""
    seconds = []
    for _ in range(STEPS):
        gaps = OperatorGaps(clock_s)
        with gaps:
            step()
            gaps.end_gap()
        seconds.append(gaps.seconds)
    return min(seconds)

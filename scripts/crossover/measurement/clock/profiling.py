"""How busy the device really is: a few steps under torch's profiler, in a pass of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

PROFILED_STEPS = 20

PROFILED_S = 0.2
"""Of slow steps so many seconds' worth, at least one: torch takes long to read the events of a large model's step."""


def busy_s(
    step: Callable[[], None], device: torch.device, synchronise: Callable[[], None], step_time_s: float
) -> float | None:
    """Device time of one step in which at least one kernel or copy ran, in seconds; None for a device without kernels.

    `step_time_s` is about what a step takes. What is missing to the wall time is the host's: Python, dispatch, waiting.
    """
    activities: dict[str, Any] = {
        "cuda": torch.profiler.ProfilerActivity.CUDA,
        "xpu": torch.profiler.ProfilerActivity.XPU,
    }
    if device.type not in activities:
        return None
    steps = max(1, min(PROFILED_STEPS, round(PROFILED_S / step_time_s)))
    with torch.profiler.profile(activities=[activities[device.type]]) as profile:
        for _ in range(steps):
            step()
        synchronise()
    kinds: Any = torch.autograd
    kind = getattr(kinds.DeviceType, device.type.upper())
    spans = [
        (event.time_range.start, event.time_range.end)
        for event in profile.events() or ()
        if event.device_type == kind and not getattr(event, "is_user_annotation", False)
    ]
    return covered(spans) * 1e-6 / steps if spans else None


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals, in their unit: what overlaps counts once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total

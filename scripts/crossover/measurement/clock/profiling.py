"""How busy the device really is: a few steps under torch's profiler, in a pass of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from crossover.measurement.clock.timing import Step

PROFILED_STEPS = 20

PROFILED_S = 0.2
"""Slow steps are profiled for about this long, at least one: torch takes long to read a large model's events."""


def busy_s(step: Step, device: torch.device, synchronise: Step, step_time_s: float) -> float | None:
    """Seconds of one step in which at least one kernel or copy ran; None for a device without kernels.

    A step takes about `step_time_s`; the rest of it is the host's: Python, dispatch, waiting.
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
    """Length of the union of intervals, in their unit: overlaps count once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total

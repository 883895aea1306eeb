"""Busy time of the device, from a few steps under torch's profiler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import torch

from crossover.measurement.clock.timing import Step

PROFILED_STEPS = 20

PROFILED_S = 0.2
"""Approximate maximum duration of the profiled steps, since torch is slow to process the events of a large model."""

COPY_IN, COPY_OUT = "Memcpy HtoD", "Memcpy DtoH"
"""Prefixes of the names of copies from host memory to a CUDA device, and back."""


class DeviceProfile(NamedTuple):
    """Times and number of a step's kernels and copies on the device, from the profiler."""

    busy_s: float
    """Seconds in which at least one kernel or copy ran."""
    work_s: float
    """Busy time without transfers, which are recognised on CUDA only."""
    kernels: float
    """Number of kernels and copies."""


PROFILED = ("cuda", "xpu")
"""Devices whose kernels the profiler sees."""


def profile_device(
    step: Step,
    device: torch.device,
    synchronise: Step,
    step_time_s: float,
    transfers: tuple[str, ...] = (COPY_IN,),
    most_steps: int = PROFILED_STEPS,
) -> DeviceProfile | None:
    """Profile a few steps that take about `step_time_s` each; None if nothing ran, or for a device not in PROFILED."""
    if device.type not in PROFILED:
        return None
    name, autograd = device.type.upper(), cast(Any, torch.autograd)
    activity, kind = getattr(torch.profiler.ProfilerActivity, name), getattr(autograd.DeviceType, name)
    steps = max(1, min(most_steps, round(PROFILED_S / step_time_s)))
    with torch.profiler.profile(activities=[activity]) as profile:
        for _ in range(steps):
            step()
        synchronise()
    spans = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in profile.events() or ()
        if event.device_type == kind and not getattr(event, "is_user_annotation", False)
    ]
    if not spans:
        return None
    busy_us = covered((start, end) for _, start, end in spans)
    work_us = covered((start, end) for name, start, end in spans if not name.startswith(transfers))
    return DeviceProfile(busy_us * 1e-6 / steps, work_us * 1e-6 / steps, len(spans) / steps)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Total length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total

"""The memory pass: what a step needs at its peak, and for what. It runs after the timing and is never timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from crossover.measurement.memory.memory_device import measure_allocator, measure_metal, process_bytes
from crossover.measurement.memory.memory_host import measure_host
from crossover.measurement.memory.memory_split import Split, Subject, split_step

STEPS = 2
"""Steps under each mark: what the first leaves behind is there when the second runs."""


def measure_memory(
    subject: Subject,
    device: torch.device,
    *,
    accelerator: Any = None,
    nvml: Any = None,
    process: Path = Path("/proc/self"),
) -> dict[str, Any]:
    """Measure a step's memory on a device: the memory columns of `Measurement`, without those that do not apply.

    `other_bytes` is the rest of the peak. On an accelerator it is the allocated peak without all parts: temporaries,
    workspaces, rounding to blocks of 512 bytes. On the CPU it is the growth of the process from base to peak without
    what the parts grew by: temporaries, workspaces, gaps in the heap. It is never negative: where a step run otherwise
    than eagerly, or the lag of the kernel's counters, leaves less than the parts, it is 0.

    `accelerator` (torch.cuda, torch.xpu or torch.mps), `nvml` (pynvml) and the folder of the process stand in for the
    real ones in tests. Raises what the step raises, out of memory included.
    """
    if device.type == "cpu":
        return _measure_cpu(subject, device, process)
    accelerator = accelerator or torch.get_device_module(device)
    if device.type == "mps":
        return _measure_mps(subject, device, accelerator)
    return _measure_accelerator(subject, device, accelerator, nvml)


def _measure_cpu(subject: Subject, device: torch.device, process: Path) -> dict[str, Any]:
    host = measure_host(_steps(subject.step), process)
    found = {"base_rss_bytes": host.base_bytes, "peak_rss_bytes": host.peak_bytes, "memory_source": host.source}
    if subject.eager_step is None:
        return found
    split = split_step(subject, subject.eager_step, device)
    other_bytes = max(0, host.peak_bytes - host.base_bytes - split.added_bytes)
    return {**found, **_columns(split), "other_bytes": other_bytes}


def _measure_accelerator(subject: Subject, device: torch.device, accelerator: Any, nvml: Any) -> dict[str, Any]:
    allocator = measure_allocator(_steps(subject.step), device, accelerator)
    found = {
        **allocator,
        "process_device_bytes": _process_bytes(device, accelerator, nvml) if device.type == "cuda" else None,
        "memory_source": f"{device.type.upper()} allocator",
    }
    if subject.eager_step is None:
        return found
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats(device)
    split = split_step(subject, subject.eager_step, device, lambda: int(accelerator.max_memory_allocated(device)))
    peak_bytes = allocator["peak_allocated_bytes"] or 0
    return {**found, **_columns(split), "other_bytes": max(0, peak_bytes - split.parts_bytes)}


def _measure_mps(subject: Subject, device: torch.device, metal: Any) -> dict[str, Any]:
    found = {**measure_metal(_steps(subject.step), metal), "memory_source": "Metal driver"}
    if subject.eager_step is None:
        return found
    return {**found, **_columns(split_step(subject, subject.eager_step, device))}


def _columns(split: Split) -> dict[str, int]:
    return {
        "parameter_bytes": split.parameter_bytes,
        "gradient_bytes": split.gradient_bytes,
        "optimizer_bytes": split.optimizer_bytes,
        "activation_bytes": split.activation_bytes,
        "resident_bytes": split.resident_bytes,
    }


def _steps(step: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(STEPS):
            step()

    return run


def _process_bytes(device: torch.device, accelerator: Any, nvml: Any) -> int | None:
    import pynvml

    uuid = getattr(accelerator.get_device_properties(device), "uuid", None)
    return process_bytes(None if uuid is None else f"GPU-{str(uuid).removeprefix('GPU-')}", nvml or pynvml)

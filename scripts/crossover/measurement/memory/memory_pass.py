"""The memory pass: how much a step needs at its peak, and for what. It runs after the timing and is never timed."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from typing import Any

import pynvml
import torch

from crossover.machine.nvml import ask, open_gpu
from crossover.measurement.memory.memory_host import measure_host
from crossover.measurement.memory.memory_split import Subject, split_step

STEPS = 2
"""Steps under each mark: the second runs beside what the first leaves behind."""


def measure_memory(step: Callable[[], None], device: torch.device, uuid: str | None = None) -> dict[str, Any]:
    """Measure a step's peak on a device: the memory columns of `Measurement` that apply, without the parts."""

    def steps() -> None:
        for _ in range(STEPS):
            step()

    if device.type == "cpu":
        return measure_host(steps)
    accelerator = torch.get_device_module(device)
    gc.collect()
    if device.type == "mps":
        return _measure_metal(steps, accelerator)
    found = _measure_allocator(steps, device, accelerator)
    return found | ({"process_device_bytes": process_bytes(uuid)} if device.type == "cuda" else {})


def split_memory(subject: Subject, device: torch.device, peak: Mapping[str, Any]) -> dict[str, int]:
    """Split a peak that `measure_memory` found into its parts, by one eager step under observation.

    `other_bytes` is the rest of the peak. On an accelerator it is the allocated peak without the parts: temporaries,
    workspaces, rounding to blocks of 512 bytes. On the CPU it is the process's growth from base to peak without the
    parts' growth: temporaries, workspaces, gaps in the heap. It is 0 if less than the parts is left, by the lag of the
    kernel's counters. Metal keeps no peak that it could be the rest of. Raises whatever a step raises that refuses to
    be observed, as some do that take derivatives in their forward pass.
    """
    if device.type == "cpu":
        split = split_step(subject, device)
        rest = peak["peak_rss_bytes"] - peak["base_rss_bytes"] - split.added_bytes
        return {**split.columns, "other_bytes": max(0, rest)}
    if device.type == "mps":
        return split_step(subject, device).columns
    accelerator = torch.get_device_module(device)
    gc.collect()
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats(device)
    columns = split_step(subject, device, lambda: int(accelerator.max_memory_allocated(device))).columns
    return {**columns, "other_bytes": max(0, peak["peak_allocated_bytes"] - sum(columns.values()))}


def _measure_allocator(run: Callable[[], None], device: torch.device, accelerator: Any) -> dict[str, Any]:
    """Run a function and read the peaks of CUDA's or XPU's caching allocator.

    The cache is emptied before, so that the reserved peak is what this function made the allocator take.
    """
    accelerator.synchronize(device)
    accelerator.empty_cache()
    base_bytes = accelerator.memory_allocated(device)
    accelerator.reset_peak_memory_stats(device)
    run()
    accelerator.synchronize(device)
    return {
        "base_bytes": base_bytes,
        "peak_allocated_bytes": accelerator.max_memory_allocated(device),
        "peak_reserved_bytes": accelerator.max_memory_reserved(device),
        "device_used_bytes": _used_bytes(device, accelerator),
        "memory_source": f"{device.type.upper()} allocator",
    }


def _used_bytes(device: torch.device, accelerator: Any) -> int | None:
    """Memory that all processes use on the device; None if the driver does not say."""
    try:
        free, total = accelerator.mem_get_info(device)
    except RuntimeError:  # some of XPU's drivers
        return None
    return int(total - free)


def _measure_metal(run: Callable[[], None], metal: Any) -> dict[str, Any]:
    """Run a function and read what Metal's driver took.

    MPS keeps no peak. The driver's memory after the function serves as the reserved peak, since the cache, emptied
    before, keeps what it takes while memory is not short.
    """
    metal.synchronize()
    metal.empty_cache()
    base_bytes = metal.current_allocated_memory()
    run()
    metal.synchronize()
    peak_bytes = metal.driver_allocated_memory()
    return {"base_bytes": base_bytes, "peak_reserved_bytes": peak_bytes, "memory_source": "Metal driver"}


def process_bytes(uuid: str | None) -> int | None:
    """Memory of this process on an NVIDIA GPU by NVML: context, libraries and allocator together.

    None if NVML does not know: no NVIDIA driver, a process number of another namespace (a container), Windows.
    """
    with open_gpu(uuid, pynvml) as gpu:
        found = None if gpu is None else ask(pynvml, lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(gpu.device))
    used = [process.usedGpuMemory for process in found or () if process.pid == os.getpid()]
    return None if not used or None in used else int(sum(used))

"""The memory pass: a step's peak memory and its parts. It runs after the timing and is never timed."""

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
    """Measure a step's peak on a device: the memory columns of `Measurement`, without the parts.

    On CUDA and XPU these are the marks of the caching allocator, whose cache is emptied first, so that the reserved
    peak is what the step made it take. MPS keeps no peak, so it has no columns.
    """

    def steps() -> None:
        for _ in range(STEPS):
            step()

    if device.type == "cpu":
        return measure_host(steps)
    if device.type == "mps":
        return {}
    accelerator = torch.get_device_module(device)
    gc.collect()
    accelerator.synchronize(device)
    accelerator.empty_cache()
    base_bytes = accelerator.memory_allocated(device)
    accelerator.reset_peak_memory_stats(device)
    steps()
    accelerator.synchronize(device)
    columns = {
        "base_bytes": base_bytes,
        "peak_allocated_bytes": accelerator.max_memory_allocated(device),
        "peak_reserved_bytes": accelerator.max_memory_reserved(device),
        "memory_source": f"{device.type.upper()} allocator",
    }
    if device.type == "cuda":
        free_bytes, total_bytes = accelerator.mem_get_info(device)
        columns |= {"device_used_bytes": total_bytes - free_bytes, "process_device_bytes": process_bytes(uuid)}
    return columns


def split_memory(subject: Subject, device: torch.device, peak: Mapping[str, Any]) -> dict[str, int]:
    """Split the peak that `measure_memory` returned into its parts, by one eager step under observation.

    `other_bytes` is the rest of the peak. On an accelerator it is the allocated peak without the parts: temporaries,
    workspaces, rounding to blocks of 512 bytes. On the CPU it is the process's growth from base to peak without the
    parts' growth: temporaries, workspaces, gaps in the heap. It is at least 0, since the kernel's counters lag. MPS has
    no peak and so no rest. Raises whatever the observed step raises, as some that take derivatives in their forward
    pass do.
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


def process_bytes(uuid: str | None) -> int | None:
    """Memory of this process on an NVIDIA GPU by NVML: context, libraries and allocator together.

    None if NVML does not know: no NVIDIA driver, a process number of another namespace (a container), Windows.
    """
    with open_gpu(uuid, pynvml) as gpu:
        running = None if gpu is None else ask(pynvml, lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(gpu.device))
    used_bytes = [process.usedGpuMemory for process in running or () if process.pid == os.getpid()]
    return None if not used_bytes or None in used_bytes else int(sum(used_bytes))

"""Memory of an accelerator while a function runs, by its allocator and by its driver."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import torch


def measure_allocator(run: Callable[[], None], device: torch.device, accelerator: Any) -> dict[str, int | None]:
    """Run a function and read the marks of CUDA's or XPU's caching allocator, under the column names.

    The cache is emptied before, so the reserved figure is what this function made the allocator take. Tensors that no
    one reaches any more are collected first. Raises what the function raises.
    """
    gc.collect()
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
    }


def _used_bytes(device: torch.device, accelerator: Any) -> int | None:
    """Memory in use on the whole device, by whomever; None where the driver does not tell."""
    try:
        free, total = accelerator.mem_get_info(device)
    except RuntimeError:  # some of XPU's drivers
        return None
    return int(total - free)


def measure_metal(run: Callable[[], None], metal: Any) -> dict[str, int | None]:
    """Run a function and read what Metal took, under the column names.

    MPS keeps no mark of what tensors needed. What its driver has taken after the function serves as the reserved peak,
    since the cache, emptied before, keeps what it takes while memory is not short.
    """
    gc.collect()
    metal.synchronize()
    metal.empty_cache()
    base_bytes = metal.current_allocated_memory()
    run()
    metal.synchronize()
    return {"base_bytes": base_bytes, "peak_reserved_bytes": metal.driver_allocated_memory()}


def process_bytes(uuid: str | None, nvml: Any, pid: int | None = None) -> int | None:
    """Memory of this process on an NVIDIA GPU by NVML: context, libraries and allocator together.

    None where NVML does not know: no NVIDIA driver, a process number of another namespace (a container), Windows, MIG.
    """
    pid = os.getpid() if pid is None else pid
    if uuid is None:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByUUID(uuid))
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
    used = [process.usedGpuMemory for process in processes if process.pid == pid]
    return None if not used or None in used else int(sum(used))

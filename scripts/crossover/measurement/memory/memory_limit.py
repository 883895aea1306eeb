"""A memory limit for a cell, so that the search for its largest batch does not exhaust the machine's memory.

On the CPU the kernel enforces the limit through RLIMIT_DATA, and torch's allocator raises its usual error. RLIMIT_AS
would also count reserved addresses, and a CUDA driver reserves more than a machine's memory. The limit is set after
torch has started its threads, since a failure to load a library or to start a thread would end the process. An
allocation that bypasses torch's allocator may fail with another error (oneDNN: "could not create a primitive").
"""

from __future__ import annotations

import gc
import mmap
import resource
from pathlib import Path

import torch

from crossover.errors import UnsupportedError
from crossover.measurement.resident_memory import status_bytes, trim_heap

GRAIN = 32768
"""Minimum number of elements per thread in torch."""


def limit_memory(device: torch.device, device_bytes: int | None, limit_bytes: int) -> None:
    """Limit this process's memory on a device that has `device_bytes` of memory.

    On the CPU the limit applies to further allocations, on CUDA to all memory of torch's allocator. Raises
    UnsupportedError if the device allows no limit.
    """
    if device.type == "cpu":
        limit_host(limit_bytes)
    elif device.type == "cuda" and device_bytes is not None:
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / device_bytes), device)
    else:
        raise UnsupportedError(f"a memory limit needs the CPU or a CUDA device; this is {device.type}")


def limit_host(limit_bytes: int) -> None:
    """Let the kernel limit this process to `limit_bytes` on top of its current data, or to an earlier, lower limit.

    Raises UnsupportedError if the kernel does not enforce the limit.
    """
    _start_torch()
    gc.collect()
    trim_heap()  # otherwise the step could reuse freed memory that does not count towards the limit
    data_bytes = status_bytes(Path("/proc/self"), "VmData")  # the kernel compares this value with the limit
    if data_bytes is not None:
        present = resource.getrlimit(resource.RLIMIT_DATA)
        lower = min([data_bytes + limit_bytes, *(limit for limit in present if limit != resource.RLIM_INFINITY)])
        resource.setrlimit(resource.RLIMIT_DATA, (lower, present[1]))
    if data_bytes is None or not _is_refused(limit_bytes + mmap.PAGESIZE):
        raise UnsupportedError("a memory limit on the CPU needs a kernel that enforces RLIMIT_DATA, such as Linux")


def _start_torch() -> None:
    """Start torch's threads, and load the libraries of a backward pass and an optimizer."""
    torch.ones(torch.get_num_threads() * GRAIN).exp_()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()


def _is_refused(size: int) -> bool:
    """True if the kernel refuses to map `size` bytes of private memory; no page is touched."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False

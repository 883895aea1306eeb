"""A limit on the memory that a cell may take, so that a search for what fits ends before the machine is out of it.

On the CPU the kernel keeps it, by RLIMIT_DATA: then torch's allocator is refused and raises its usual error. RLIMIT_AS
would do the same to tensors, but counts reserved addresses too, of which a CUDA driver takes more than any machine has.
The limit is set when torch is loaded and its threads run, above what they hold by then: a library that fails to load or
to start a thread ends the process instead of raising, so nothing of that kind may be left to do.

A few allocations are torch's, but not its allocator's: where just these are refused, oneDNN says "could not create a
primitive" or crashes. It happens far below what a cell needs, between the sizes of two of its tensors, and nobody can
tell it from a defect.
"""

from __future__ import annotations

import gc
import mmap
import resource
from pathlib import Path

import torch

from crossover.measurement.memory.memory_host import status_bytes, trim_heap
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.precision import UnsupportedError

GRAIN = 32768
"""Elements that torch gives to one thread at least."""


def limit_memory(target: OpenDevice, limit_bytes: int) -> None:
    """Let this process take at most so much more of a device's memory; raises UnsupportedError where nothing keeps it.

    On the CPU the limit is above what the process holds when this is called; on CUDA it is the whole of what torch's
    allocator may take.
    """
    if target.device.type == "cpu":
        limit_host(limit_bytes)
    elif target.device.type == "cuda" and target.memory_bytes is not None:
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / target.memory_bytes), target.device)
    else:
        raise UnsupportedError(f"a memory limit needs the CPU or a CUDA device; this is {target.device.type}")


def limit_host(limit_bytes: int) -> None:
    """Have the kernel refuse this process more than `limit_bytes` on top of its data as it is now."""
    load_the_rest()
    gc.collect()
    trim_heap()  # what freed memory the heap keeps is there to be used, and no limit would see it
    held_bytes = status_bytes(Path("/proc/self"), "VmData")  # mapped, touched or not: what the kernel holds against it
    if held_bytes is not None:
        present = resource.getrlimit(resource.RLIMIT_DATA)
        lower = min([held_bytes + limit_bytes, *(limit for limit in present if limit != resource.RLIM_INFINITY)])
        resource.setrlimit(resource.RLIMIT_DATA, (lower, present[1]))
    if held_bytes is None or not _is_refused(limit_bytes + mmap.PAGESIZE):
        raise UnsupportedError("a memory limit on the CPU needs a kernel that keeps RLIMIT_DATA, such as Linux")


def load_the_rest() -> None:
    """Start the threads that torch computes with, and what it loads for a backward pass and an optimizer."""
    torch.ones(torch.get_num_threads() * GRAIN).exp_()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()


def _is_refused(size: int) -> bool:
    """Whether the kernel refuses to map that much private memory; nothing is touched."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False

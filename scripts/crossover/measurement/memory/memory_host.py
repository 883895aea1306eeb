"""Resident memory of this process while a function runs.

The kernel's high-water mark is reset before and read after. `ru_maxrss` would not do: a process inherits it from its
parent, through exec. Two things keep the growth from being exactly what tensors need:

- The mark comes from counters that each CPU adds up only now and then. Since Linux 6.2 each may lag by
  max(32, 2 CPUs) pages, at most 32 MiB in all on 64 CPUs; before, by 64 page faults a thread. On two CPUs the mark was
  within 0.3 MB of the page tables.
- The C library's heap keeps for a while what tensors free, and leaves gaps. The process really takes that memory: up to
  13 MB more than the tensors on most models tried, twice as much on a deep one with middling layers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path


def measure_host(run: Callable[[], None], process: Path = Path("/proc/self")) -> tuple[int, int] | None:
    """Run a function; resident memory before it and at its peak, in bytes. None if the kernel has no mark to reset."""
    trim_heap()
    base_bytes = status_bytes(process, "VmRSS")
    can_tell = base_bytes is not None and _reset_mark(process)
    run()
    peak_bytes = status_bytes(process, "VmHWM")
    if not can_tell or base_bytes is None or peak_bytes is None:
        return None
    return base_bytes, max(base_bytes, peak_bytes)


def trim_heap() -> None:
    """Return freed memory to the kernel, if the C library can (glibc).

    Memory that earlier steps freed but the heap kept would count as the base and hide what the next step needs.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return
    malloc_trim(ctypes.c_size_t(0))


def status_bytes(process: Path, key: str) -> int | None:
    """A line of the kernel's status file, which counts in KiB; None if there is none."""
    status = process / "status"
    found = re.search(rf"^{key}:\s*(\d+) kB$", status.read_text(), re.MULTILINE) if status.is_file() else None
    return int(found[1]) * 1024 if found else None


def _reset_mark(process: Path) -> bool:
    """Reset the high-water mark; False if the kernel does not offer that, or not to this user."""
    try:
        (process / "clear_refs").write_text("5")
    except OSError:
        return False
    return True

"""Resident memory of this process while a function runs.

The kernel's high-water mark is reset before the function and read after it. `ru_maxrss` is not used, since a process
inherits it from its parent. The mark is not exactly the memory of tensors. The kernel's per-CPU counters lag (by at
most 32 MiB on 64 CPUs), and the heap keeps freed memory and has gaps (up to 13 MB in most models tried).
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

SAMPLING_INTERVAL_S = 0.001

RESOLUTION_BYTES = max(64, 2 * (os.cpu_count() or 1)) * mmap.PAGESIZE
"""Growth of resident memory that the kernel may not show yet, or show late, on one CPU.

A counter holds back 64 pages per thread before Linux 6.2 (mm/memory.c, TASK_RSS_EVENTS_THRESH), since then the larger
of 32 pages and two per CPU (lib/percpu_counter.c, percpu_counter_batch).
"""


def measure_host(run: Callable[[], None], process: Path = Path("/proc/self")) -> dict[str, Any]:
    """Run a function and measure this process's resident memory; returns columns of `Measurement`.

    If the kernel's high-water mark `VmHWM` cannot be read or reset, the memory is sampled, which can miss a short peak.
    """
    gc.collect()
    trim_heap()
    base_bytes = status_bytes(process, "VmRSS")
    if base_bytes is not None and status_bytes(process, "VmHWM") is not None and _reset_mark(process):
        run()
        peak_bytes = status_bytes(process, "VmHWM")
        assert peak_bytes is not None
        return _columns(base_bytes, max(base_bytes, peak_bytes), "VmHWM")
    memory_info = psutil.Process().memory_info
    return sample_host(run, lambda: int(memory_info().rss))


def grown_bytes(run: Callable[[], None]) -> int:
    """Run a function and return the peak growth of this process's resident memory, in bytes."""
    columns = measure_host(run)
    return int(columns["rss_growth_bytes"])


def _columns(base_bytes: int, peak_bytes: int, source: str) -> dict[str, Any]:
    growth = {"rss_growth_bytes": peak_bytes - base_bytes}
    return {**growth, "base_rss_bytes": base_bytes, "peak_rss_bytes": peak_bytes, "memory_source": source}


def sample_host(run: Callable[[], None], read_rss: Callable[[], int]) -> dict[str, Any]:
    """Like `measure_host`, but a thread samples the resident memory."""
    base_bytes = read_rss()
    readings = [base_bytes]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLING_INTERVAL_S):
            readings.append(read_rss())

    sampler = threading.Thread(target=sample, name="sampled RSS", daemon=True)
    sampler.start()
    try:
        run()
    finally:
        done.set()
        sampler.join()
    return _columns(base_bytes, max(*readings, read_rss()), "sampled RSS")


def trim_heap() -> None:
    """Return freed memory to the kernel (with glibc only), since a step that reuses it would seem to need less."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))


def status_bytes(process: Path, key: str) -> int | None:
    """A value from a process's status file in bytes; None if missing."""
    status = process / "status"
    text = status.read_text(encoding="utf-8", errors="replace") if status.is_file() else ""
    match = re.search(rf"^{key}:\s*(\d+)", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _reset_mark(process: Path) -> bool:
    try:
        # The file exists, and cannot be read.
        with open(process / "clear_refs", "wb", opener=lambda path, _: os.open(path, os.O_WRONLY)) as file:
            file.write(b"5")
    except OSError:
        return False
    return True

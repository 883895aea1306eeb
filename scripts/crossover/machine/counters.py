"""The host's cumulative counters, and the load by other processes between two readings of them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from crossover.machine.kernel import control_groups, read_kernel, statistic
from crossover.machine.threads import on_their_cores, usable_cpus

MICRO, NANO = 1e-6, 1e-9


@dataclass(frozen=True)
class CpuTicks:
    """Time of some CPUs since boot, in clock ticks."""

    cpus: int
    total: int
    busy: int
    """Time of tasks and interrupts, without idle time, I/O wait and steal."""
    stolen: int
    process: int
    children: int


@dataclass(frozen=True, kw_only=True)
class Counters:
    """The host's counters at one moment; None for a counter that cannot be read."""

    monotonic_s: float
    load: float
    cpu_pressure_s: float | None
    throttled_s: float | None
    ticks: CpuTicks | None
    """Time of the cores given to `read_counters`."""
    host_ticks: CpuTicks | None


def read_counters(root: Path = Path("/"), cpus: Iterable[int] | None = None) -> Counters:
    """Read the counters of the host and of the cores of `cpus` (default: the affinity mask)."""
    times = _times(root)
    used = _used(root / "proc/self/stat")
    running = psutil.Process().children(recursive=True)
    used_by_running = sum(sum(_used(root / f"proc/{child.pid}/stat") or ()) for child in running)
    used_ticks = None if used is None else (used[0], used[1] + used_by_running)
    near = on_their_cores(usable_cpus() if cpus is None else cpus, root)
    return Counters(
        monotonic_s=time.monotonic(),
        load=os.getloadavg()[0],
        cpu_pressure_s=_cpu_pressure_s(root),
        throttled_s=_throttled_s(root),
        ticks=_ticks([row for cpu, row in times.items() if cpu in near], used_ticks),
        host_ticks=_ticks(list(times.values()), used_ticks),
    )


def counters_between(before: Counters, after: Counters) -> dict[str, Any]:
    """Columns of `Measurement` about the host between two readings.

    The load average cannot replace `others_cpus`, since it includes the previous trial and this process's threads. If
    /proc/stat shows only a container's time (lxcfs), `others_cpus` is near 0. `steal_share` is relative to the time in
    which a CPU had a task to run, since an idle CPU loses no time to other guests.
    """
    elapsed_s = after.monotonic_s - before.monotonic_s
    waited_s = _rise(before.cpu_pressure_s, after.cpu_pressure_s)
    return {
        "load_after": after.load,
        "cpu_pressure_share": None if waited_s is None or elapsed_s <= 0 else waited_s / elapsed_s,
        "cgroup_throttled_s": _rise(before.throttled_s, after.throttled_s),
        **_shares(before.ticks, after.ticks),
        "host_others_cpus": _shares(before.host_ticks, after.host_ticks)["others_cpus"],
    }


def involuntary_switches() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def busy_cores(seconds: float, cpu_ns: Callable[[], int], sleep: Callable[[float], None]) -> float:
    """Number of cores that this process keeps busy on average while this thread sleeps for some seconds."""
    start_ns = cpu_ns()
    sleep(seconds)
    return (cpu_ns() - start_ns) * NANO / seconds


def queued_ns(root: Path = Path("/")) -> int:
    """Time for which this process's threads have waited for a core, summed over the threads; 0 if it cannot be read."""
    texts = [read_kernel(path) for path in (root / "proc/self/task").glob("*/schedstat")]
    return sum(int(text.split()[1]) for text in texts if text)


def _shares(before: CpuTicks | None, after: CpuTicks | None) -> Mapping[str, float | None]:
    if before is None or after is None or before.cpus != after.cpus or after.total <= before.total:
        return {"steal_share": None, "others_cpus": None, "children_cpus": None}
    total = after.total - before.total
    stolen, busy = after.stolen - before.stolen, after.busy - before.busy
    # The kernel drops the time of a child that nobody waited for, so the difference may be negative.
    children = max(0, after.children - before.children)
    others = busy - (after.process - before.process) - children
    return {
        "steal_share": stolen / (stolen + busy) if stolen else 0.0,
        # The times of CPUs and processes are read one after the other, so the difference may be slightly negative.
        "others_cpus": max(0, others) / total * after.cpus,
        "children_cpus": children / total * after.cpus,
    }


def _rise(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _cpu_pressure_s(root: Path) -> float | None:
    """Seconds in which at least one task of the host waited for a CPU, from the "some" line of PSI."""
    for line in (read_kernel(root / "proc/pressure/cpu") or "").splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) * MICRO
    return None


def _throttled_s(root: Path) -> float | None:
    """Seconds for which CPU quotas throttled this process's control group and its parents, summed over CPUs."""
    seconds = []
    for level in control_groups("cpu", root):
        # Microseconds in cgroup v2, nanoseconds in v1.
        for name, unit_s in (("throttled_usec", MICRO), ("throttled_time", NANO)):
            value = statistic(level / "cpu.stat", name)
            if value is not None:
                seconds.append(value * unit_s)
    return sum(seconds) if seconds else None


def _times(root: Path) -> dict[int, list[int]]:
    """Ticks of each CPU from /proc/stat (man 5 proc). The time of virtual guests is part of user and nice."""
    rows = [line.split() for line in (read_kernel(root / "proc/stat") or "").splitlines()]
    numbered = [(row[0][3:], row[1:9]) for row in rows if row and row[0].startswith("cpu")]
    return {int(cpu): [int(value) for value in row] for cpu, row in numbered if cpu.isdigit() and len(row) == 8}


def _ticks(times: Sequence[Sequence[int]], used_ticks: tuple[int, int] | None) -> CpuTicks | None:
    if not times or used_ticks is None:
        return None
    user, nice, system, idle, waiting, irq, softirq, stolen = map(sum, zip(*times, strict=True))
    busy = user + nice + system + irq + softirq
    return CpuTicks(
        cpus=len(times),
        total=busy + idle + waiting + stolen,
        busy=busy,
        stolen=stolen,
        process=used_ticks[0],
        children=used_ticks[1],
    )


def _used(stat: Path) -> tuple[int, int] | None:
    """Ticks used by a process, and by the children for which it has waited; None if they cannot be read."""
    text = read_kernel(stat)
    if text is None:
        return None
    used, system, children, children_system = map(int, text.rpartition(")")[2].split()[11:15])
    return used + system, children + children_system

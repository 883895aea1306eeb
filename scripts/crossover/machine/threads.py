"""How many threads a CPU measurement gets: the physical cores that this process may use.

Snakemake exports OMP_NUM_THREADS=1 under `--cores 1`, and a CPU timed on one thread makes every GPU look good; so the
measuring process counts for itself and says so in its row.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from crossover.config.words import HALF, threads_of_side
from crossover.machine.kernel import cpu_control_groups, read_kernel

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def usable_cpus() -> set[int]:
    """Logical CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def confine(cpus: Iterable[int] | None) -> None:
    """Have this process, and what it starts from now on, run on some logical CPUs alone; None: as it is."""
    if cpus is not None:
        os.sched_setaffinity(0, cpus)


def usable_cores(
    cpus: Iterable[int] | None = None,
    environment: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
    sharers: int = 1,
) -> int:
    """Physical cores within the affinity mask, the control group's CPU quota and the Slurm allocation; at least 1.

    Quota and allocation are divided among `sharers`, processes that run at the same time on `cpus` of their own.
    """
    allowed = usable_cpus() if cpus is None else set(cpus)
    limits = [physical_cores(allowed, root)]
    quota = cgroup_quota(root)
    if quota is not None:
        limits.append(math.floor(quota / sharers))
    if environment.get("SLURM_CPUS_PER_TASK", "").isdigit():
        limits.append(int(environment["SLURM_CPUS_PER_TASK"]) // sharers)
    return max(1, min(limits))


def threads_for(device: str, cpu_threads: int | str, cores: int) -> int:
    """Threads that a trial on a device is to run on, of so many usable cores; at least 1.

    A CPU side names its own; every other device has `cpu_threads`, a number, or auto for all usable cores.
    """
    asked = threads_of_side(device)
    if asked == HALF:
        return max(1, cores // 2)
    asked = cpu_threads if asked is None else asked
    return cores if asked == "auto" else int(asked)


def lacking_cores(device: str, cores: int) -> str | None:
    """Why a CPU side cannot be measured on so many usable cores; None where it can, and for every other device."""
    asked = threads_of_side(device)
    if not isinstance(asked, int) or asked <= cores:
        return None
    return f"{device} needs {asked} physical cores, and this job may use {cores}: give it more, or leave the side out"


def physical_cores(cpus: Iterable[int], root: Path = Path("/")) -> int:
    """Distinct cores behind logical CPUs, by the kernel's topology; without one, what psutil knows."""
    siblings = [_siblings(cpu, root) for cpu in cpus]
    if None not in siblings:
        return len(set(siblings))
    import psutil  # only where the kernel's topology is missing: a trial's parent should start quickly

    return min(len(siblings), psutil.cpu_count(logical=False) or len(siblings))


def cores_of(cpus: Iterable[int], root: Path = Path("/")) -> list[list[int]]:
    """Logical CPUs core by core, in the order of their numbers; without the kernel's topology each is a core."""
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(_siblings(cpu, root) or str(cpu), []).append(cpu)
    return list(cores.values())


def _siblings(cpu: int, root: Path) -> str | None:
    """The CPUs of one core, as the kernel lists them."""
    return read_kernel(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """The smallest CPU quota on the way up from this process's control group, in CPUs; None without a quota."""
    quotas = [quota for level in cpu_control_groups(root) for quota in _quota_of(level)]
    return min(quotas, default=None)


def _quota_of(level: Path) -> list[float]:
    """The quota of one control group, of version 2 or 1, as a list of at most one."""
    if (unified := level / "cpu.max").is_file():
        quota, period = unified.read_text(encoding="ascii").split()
        return [] if quota == "max" else [int(quota) / int(period)]
    if (legacy := level / "cpu.cfs_quota_us").is_file():
        quota_us = int(legacy.read_text(encoding="ascii"))
        period_us = int((level / "cpu.cfs_period_us").read_text(encoding="ascii"))
        return [] if quota_us < 0 else [quota_us / period_us]
    return []


def export_threads(threads: int) -> None:
    """Set the thread variables of this process; to be called before torch is imported, which reads them then."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)

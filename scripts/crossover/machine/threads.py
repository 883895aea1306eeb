"""Cores and threads of a trial: the physical cores that this process may use, and a GPU's share of the CPUs.

Snakemake exports OMP_NUM_THREADS=1 under `--cores 1`, and a CPU timed on one thread makes a GPU look fast. The
measuring process therefore counts its cores itself and records their number in its row.

A GPU trial keeps to its GPU's share of the CPUs even if no other GPU is measured, so that trials alone and side by side
differ as little as possible.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, combinations
from pathlib import Path

from crossover.config.words import HALF, ranks_of_side, threads_of_side
from crossover.machine.gpus import Gpus, InstalledGpu
from crossover.machine.kernel import CPUS, cgroup_quota, cpu_numbers, read_kernel

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def usable_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def confine(cpus: Iterable[int] | None) -> None:
    """Pin this process, and those that it starts later, to some logical CPUs; None changes nothing."""
    if cpus is not None:
        os.sched_setaffinity(0, cpus)


def usable_cores(
    cpus: Iterable[int] | None = None,
    environment: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
    sharers: int = 1,
) -> int:
    """Number of physical cores allowed by the affinity mask, the CPU quota and the Slurm allocation; at least 1.

    Quota and allocation are divided among `sharers` processes that run at the same time on different CPUs.
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
    """Number of threads of a trial with `cores` usable cores; `cpu_threads` is a number, or `auto` for all cores."""
    threads = threads_of_side(device)
    if threads == HALF:
        return max(1, cores // 2)
    threads = cpu_threads if threads is None else threads
    return cores if threads == "auto" else int(threads)


def lacking_cores(device: str, cores: int) -> str | None:
    """Reason why a device such as cpu-4 cannot be measured with `cores` usable cores, if any."""
    threads = threads_of_side(device)
    if not isinstance(threads, int) or threads <= cores:
        return None
    return f"{device} needs {threads} physical cores, and this job may use {cores}: give it more, or leave the side out"


def physical_cores(cpus: Iterable[int], root: Path = Path("/")) -> int:
    """Number of physical cores of some logical CPUs, from the kernel's topology, or else from psutil."""
    siblings = [_siblings(cpu, root) for cpu in cpus]
    if None not in siblings:
        return len(set(siblings))
    import psutil  # imported here, so that a trial's parent starts quickly

    return min(len(siblings), psutil.cpu_count(logical=False) or len(siblings))


def on_their_cores(cpus: Iterable[int], root: Path = Path("/")) -> set[int]:
    """Logical CPUs and those that share a core with them, since load on one slows down the other."""
    cpus = set(cpus)
    return cpus.union(*(cpu_numbers(_siblings(cpu, root) or "") for cpu in cpus))


def cores_of(cpus: Iterable[int], root: Path = Path("/")) -> list[list[int]]:
    """Logical CPUs by core, in the order of their numbers; without the kernel's topology, each CPU is a core."""
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(_siblings(cpu, root) or str(cpu), []).append(cpu)
    return list(cores.values())


def _siblings(cpu: int, root: Path) -> str | None:
    return read_kernel(root / CPUS / f"cpu{cpu}/topology/thread_siblings_list")


def export_threads(threads: int) -> None:
    """Set the environment variables for the number of threads, some of which torch reads when it is imported."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)


def share_of_host(device: str, cpu_threads: int | str, uuid: str | None, gpus: Gpus) -> tuple[list[int] | None, int]:
    """The CPUs (None: not restricted) and the number of threads of a trial; `uuid` is its leased GPU, if any."""
    cpus = None
    if uuid is not None and hasattr(os, "sched_setaffinity"):
        cpus = cpus_of_gpus(gpus, usable_cpus(), os.cpu_count() or 1).get(uuid)
    cores = usable_cores(cpus, sharers=max(1, len(_visible_boards(gpus))))
    return cpus, threads_for(device, cpu_threads, cores)


def cpus_of_processes(device: str) -> list[list[int]]:
    """Logical CPUs of each process of a side such as cpu-2x1; empty for other sides, or if there are too few cores."""
    ranks, threads = ranks_of_side(device), threads_of_side(device)
    cores = cores_of(usable_cpus())
    if ranks == 1 or not isinstance(threads, int) or len(cores) < ranks * threads:
        return []
    return [sorted(chain.from_iterable(cores[rank * threads :][:threads])) for rank in range(ranks)]


def cpus_of_gpus(gpus: Gpus, allowed: Collection[int], online: int, root: Path = Path("/")) -> dict[str, list[int]]:
    """Logical CPUs of each GPU or MIG instance, by its UUID; empty if each may use all allowed CPUs.

    Whole cores are divided among the installed GPUs if all `online` CPUs are `allowed`, else among the visible GPUs. If
    a NUMA node has fewer cores than GPUs, nothing is divided. MIG instances of a GPU share its cores.
    """
    sharing = gpus.installed if len(allowed) >= online else _visible_boards(gpus)
    near = _near(sharing, frozenset(allowed))
    if len(sharing) < 2 and set(allowed) in near:
        return {}
    groups = {cpus: [gpu for gpu, cpus_near in zip(sharing, near, strict=True) if cpus_near == cpus] for cpus in near}
    cores = {cpus: cores_of(cpus, root) for cpus in groups}
    each = min((len(cores[cpus]) // len(group) for cpus, group in groups.items()), default=0)
    if not each:
        return {}
    return {
        name: sorted(chain.from_iterable(cores[cpus][position * each : (position + 1) * each]))
        for cpus, group in groups.items()
        for position, gpu in enumerate(group)
        for name in gpu.usable
    }


def _visible_boards(gpus: Gpus) -> tuple[InstalledGpu, ...]:
    return tuple(board for board in gpus.installed if not set(gpus.visible).isdisjoint(board.usable))


def _near(gpus: Collection[InstalledGpu], allowed: frozenset[int]) -> list[frozenset[int]]:
    """The allowed CPUs in each GPU's NUMA node.

    If a set is empty or two sets overlap in part, each GPU gets all allowed CPUs.
    """
    near = [gpu.near & allowed for gpu in gpus]
    separable = all(near) and all(first == second or not first & second for first, second in combinations(near, 2))
    return near if separable else [allowed] * len(near)

"""Which CPUs the trials on a GPU run on: those near it, shared with the other GPUs there.

The same GPU always has the same cores, whether others are at work or not, so that a trial alone and a trial beside
others differ in nothing that could be helped. All GPUs have as many, so that their rows are alike.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import chain, combinations
from pathlib import Path

from crossover.machine.gpus import Gpus, InstalledGpu
from crossover.machine.threads import cores_of, threads_for, usable_cores, usable_cpus


def share_of_host(device: str, cpu_threads: int | str, uuid: str | None, gpus: Gpus) -> tuple[list[int] | None, int]:
    """The CPUs and the number of threads that a trial on a device has; `uuid` is its leased GPU, if any.

    The CPUs are None where the GPU has no own ones, or the system binds no process to CPUs.
    """
    cpus = None
    if uuid is not None and hasattr(os, "sched_setaffinity"):
        cpus = cpus_of_gpus(gpus, usable_cpus(), os.cpu_count() or 1).get(uuid)
    cores = usable_cores(cpus, sharers=max(1, len(visible_boards(gpus))))
    return cpus, threads_for(device, cpu_threads, cores)


def cpus_of_gpus(gpus: Gpus, allowed: Collection[int], online: int, root: Path = Path("/")) -> dict[str, list[int]]:
    """Logical CPUs for each visible GPU or instance, by its id; empty where nothing is to be shared out.

    `allowed` are the CPUs that this process may run on, of `online` in the machine. Whole cores are shared out in the
    order of the PCI bus. Who may run on all CPUs shares them with every GPU of the machine; who may not has been given
    some for its own GPUs, which are the visible ones. Nothing is shared out where that is a single GPU, or where there
    are fewer cores than GPUs. Instances of one GPU have its share in common.
    """
    sharing = gpus.installed if len(allowed) >= online else visible_boards(gpus)
    if len(sharing) < 2:
        return {}
    near = _near(sharing, frozenset(allowed))
    groups = {cpus: [gpu for gpu, own in zip(sharing, near, strict=True) if own == cpus] for cpus in near}
    cores = {cpus: cores_of(cpus, root) for cpus in groups}
    each = min(len(cores[cpus]) // len(group) for cpus, group in groups.items())
    if not each:
        return {}
    return {
        one.id: sorted(chain.from_iterable(cores[cpus][place * each : (place + 1) * each]))
        for cpus, group in groups.items()
        for place, gpu in enumerate(group)
        for one in gpu.usable
    }


def visible_boards(gpus: Gpus) -> tuple[InstalledGpu, ...]:
    """The physical GPUs of which this process may use all or a part."""
    visible = {gpu.id for gpu in gpus.visible}
    return tuple(board for board in gpus.installed if visible.intersection(gpu.id for gpu in board.usable))


def _near(gpus: Collection[InstalledGpu], allowed: frozenset[int]) -> list[frozenset[int]]:
    """The allowed CPUs near each GPU; all of them for every GPU unless those of any two are the same or apart."""
    near = [gpu.near & allowed for gpu in gpus]
    known = all(near) and all(one == other or not one & other for one, other in combinations(near, 2))
    return near if known else [allowed] * len(near)

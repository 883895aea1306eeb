"""What every measuring command does around its work: threads are exported, signals heard, and a GPU is held."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from crossover.config.options import tell
from crossover.machine.lease import lease
from crossover.machine.threads import export_threads, share_of_host
from crossover.measurement.host.whole_node import check_whole_node, takes_all_cores
from crossover.measurement.process.attempts import BATCH_JOBS
from crossover.measurement.process.supervision import exit_statuses, interruptible


@dataclass(frozen=True)
class Held:
    """What a command may use."""

    threads: int
    uuid: str | None
    """The leased GPU; None for another device."""
    lease_wait_s: float | None
    cpus: list[int] | None
    """Logical CPUs that the measuring process is to run on; None: those of this process."""


@contextmanager
def holding(device: str, cpu_threads: int | str, holder: str) -> Iterator[Held]:
    """Hold a device while the block runs; `holder` is what others read while they wait for it.

    `cpu_threads` is a number, or auto for the usable cores, of a GPU those that `cpus_of_gpus` gives it; a CPU side has
    its own. This process only says so: it runs where it ran before, as does a trial server that it may start. A signal,
    or a measuring process that failed, ends the program with the status that a shell expects. Raises UserError where a
    CPU that is to be timed on all cores has a part of its node.
    """
    if job := batch_job(os.environ):
        tell(f"{job} on {platform.node()}")
    if takes_all_cores(device, cpu_threads):
        check_whole_node()
    with exit_statuses(), interruptible(), lease(device, os.environ, holder=holder, tell=tell) as leased:
        cpus, threads = share_of_host(device, cpu_threads, leased.uuid, leased.gpus)
        export_threads(threads)
        os.environ.update(leased.environment)
        yield Held(threads, leased.uuid, leased.waited_s, cpus)


def batch_job(environment: Mapping[str, str]) -> str | None:
    """The batch system's number of this job, with the variable that holds it; None outside of any."""
    return next((f"{name}={environment[name]}" for name in BATCH_JOBS if name in environment), None)

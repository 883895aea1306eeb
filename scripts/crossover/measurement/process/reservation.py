"""Reserve the host and a device for a measuring command, set its threads, and handle signals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from crossover.config.options import tell
from crossover.config.words import HALF, is_cpu, ranks_of_side, threads_of_side
from crossover.errors import UserError
from crossover.machine.environment import timed_variables
from crossover.machine.lease import lease
from crossover.machine.threads import (
    cpus_of_processes,
    export_threads,
    physical_cores,
    share_of_host,
    usable_cores,
    usable_cpus,
)
from crossover.machine.turns import batch_job, host_turn
from crossover.measurement.process.jobs import Job
from crossover.measurement.process.supervision import exit_statuses

SLURM_LIMIT_S = 10


AnyJob = TypeVar("AnyJob", bound=Job)


@contextmanager
def reserve(job: AnyJob, *, alone: bool = False) -> Iterator[AnyJob]:
    """Reserve a job's device while the block runs; yields the job with its threads, GPU and CPUs.

    For the CPU, or if `alone`, nothing else is measured on this host meanwhile. `cpu_threads` is a number, or `auto`
    for all usable cores; a GPU's usable cores are its share by `cpus_of_gpus`. A device such as cpu-4 sets its own
    number of threads. Each of several GPUs or processes has CPUs of its own. This process's affinity does not change,
    since a trial server would inherit it. Raises UserError as `check_whole_node`, `host_turn` and `lease` do.
    """
    device, cpu_threads = job.cell.device, job.cpu_threads
    if batch := batch_job():
        tell(f"{batch} on {os.uname().nodename}")
    side = threads_of_side(device)
    if is_cpu(device) and (side == HALF or (side is None and cpu_threads == "auto")):  # all or half of the cores
        check_whole_node()
    with (
        exit_statuses(),
        # The turn comes first, so that a trial leases no GPU while it waits for a turn.
        host_turn(os.environ, alone=alone or is_cpu(device), tell=tell) as turn,
        lease(device, os.environ, tell=tell) as leased,
    ):
        uuids = leased.uuids or (None,)
        shares = [share_of_host(device, cpu_threads, uuid, leased.gpus) for uuid in uuids]
        rank_cpus = cpus_of_processes(device) or [cpus for cpus, _ in shares if cpus is not None]
        threads = min(threads for _, threads in shares)
        export_threads(threads)
        os.environ.update(leased.environment)
        if is_cpu(device) and job.cell.model is None:
            # A first backward pass counts the GPUs, for which their driver starts: 0.4 s on a host with two.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        yield replace(
            job,
            isolation=choose_isolation(job.isolation),
            threads=threads,
            uuid=uuids[0],
            cpus=sorted({cpu for cpus in rank_cpus for cpu in cpus}) or None,
            rank_uuids=list(leased.uuids) if len(uuids) > 1 else None,
            rank_cpus=rank_cpus if ranks_of_side(device) > 1 and rank_cpus else None,
            environment_variables=json.dumps(timed_variables(os.environ)),
            lease_wait_s=turn.waited_s + leased.waited_s,
            turn_missed=turn.missed,
        )


def choose_isolation(requested: str) -> str:
    """The isolation of a trial; `auto` is the trial server on Linux outside batch jobs, else a fresh process."""
    if requested != "auto":
        return requested
    return "server" if sys.platform == "linux" and batch_job() is None else "process"


def ask_slurm(job: str) -> str:
    """Slurm's description of a job; empty if Slurm does not answer."""
    command = ["scontrol", "--oneliner", "show", "job", job]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SLURM_LIMIT_S, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return ""


def check_whole_node() -> None:
    """Raise UserError if this Slurm job has cores that its step may not use, as happens in an exclusive job.

    The CPU would look slow if it were timed on some of its cores. Slurm may count threads or cores as CPUs, and rounds
    a request up to whole cores.
    """
    job = os.environ.get("SLURM_JOB_ID")
    description = ask_slurm(job) if job else ""
    match = re.search(r"\bNumCPUs=(\d+)", description)
    if match is None or not re.search(r"\bNumNodes=1\b", description):
        return
    node_cpus, allowed = range(os.cpu_count() or 1), usable_cpus()
    cores = physical_cores(node_cpus)
    requested = os.environ.get("SLURM_CPUS_PER_TASK", "")
    job_cpus, step_cpus = int(match[1]), min(len(allowed), int(requested) if requested.isdigit() else len(allowed))
    threads_per_core = len(node_cpus) // cores
    if job_cpus - step_cpus < threads_per_core or usable_cores(allowed) >= cores:
        return
    raise UserError(
        f"Slurm job {job}: it has {job_cpus} CPUs of its node, but its step may use only {step_cpus}, and the CPU is "
        f"to be timed on all cores; ask for {job_cpus}, by cluster.classes.<class>.cores in the config or "
        "cpus_per_task in the profile, exclude other nodes by a partition or a constraint, or set cpu_threads in the "
        "config"
    )

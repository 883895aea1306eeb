"""That a CPU trial which has a node to itself is not timed on a part of it.

Slurm gives an exclusive job all CPUs of its node, but the step in which a trial runs only those that were asked for.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from crossover.config.words import HALF, is_cpu, threads_of_side
from crossover.errors import UserError
from crossover.machine.threads import physical_cores, usable_cores, usable_cpus

PATIENCE_S = 10


def takes_all_cores(device: str, cpu_threads: int | str) -> bool:
    """Whether the number of threads of a trial follows from the cores that there are."""
    side = threads_of_side(device)
    return is_cpu(device) and (side == HALF or (side is None and cpu_threads == "auto"))


def ask_slurm(job: str) -> str:
    """What Slurm says of a job; empty where it does not answer."""
    command = ["scontrol", "--oneliner", "show", "job", job]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return ""


def check_whole_node(
    environment: Mapping[str, str] = os.environ,
    cpus: Collection[int] | None = None,
    machine_cpus: int | None = None,
    root: Path = Path("/"),
    ask: Callable[[str], str] = ask_slurm,
) -> None:
    """Raise UserError where this Slurm job has more CPUs of its node than its step may use.

    CPUs as Slurm counts them. Those that lie on cores in use already (a request is rounded up to whole cores) do not
    count. Outside of Slurm, in a job of several nodes and where Slurm does not answer, nothing is checked.
    """
    job = environment.get("SLURM_JOB_ID")
    answer = ask(job) if job else ""
    found = re.search(r"\bNumCPUs=(\d+)", answer)
    if found is None or not re.search(r"\bNumNodes=1\b", answer):
        return
    allowed = usable_cpus() if cpus is None else cpus
    machine = range(machine_cpus or os.cpu_count() or 1)
    cores_of_machine = physical_cores(machine, root)
    asked = environment.get("SLURM_CPUS_PER_TASK", "")
    of_job, of_step = int(found[1]), min(len(allowed), int(asked) if asked.isdigit() else len(allowed))
    threads_per_core = len(machine) // cores_of_machine
    if of_job - of_step < threads_per_core or usable_cores(allowed, environment, root) >= cores_of_machine:
        return
    raise UserError(
        f"Slurm job {job}: it has {of_job} CPUs of its node, but its step may use {of_step}, and the CPU is to be "
        f"timed on all; ask for {of_job}, by hardware.<class>.cores in the config or cpus_per_task in the profile, "
        "keep other nodes out by a partition or a constraint, or set cpu_threads in the config to the number you mean"
    )

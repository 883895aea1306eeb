"""What would make numbers measured on this machine worse, and what to do about it; needs neither torch nor a GPU."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crossover.config.words import BASELINE
from crossover.machine.counters import counters_between, read_counters
from crossover.machine.kernel import cgroup_quota, governor, turbo
from crossover.machine.nvml import SLOWDOWN, GpuState, list_gpus, read_gpu
from crossover.machine.threads import usable_cores, usable_cpus
from crossover.machine.trust import others_disturb

THREAD_SETTINGS = (
    "OMP_THREAD_LIMIT",
    "OMP_DYNAMIC",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
)
"""Without OMP_NUM_THREADS and its kind: every trial sets those itself, and Snakemake exports them to all its jobs."""

LOOK_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the doctor looks at; None where the system does not say."""

    cpus: int
    """Logical CPUs of the machine."""
    usable_cpus: int
    usable_cores: int
    quota_cpus: float | None = None
    slurm_cpus: int | None = None
    thread_settings: Mapping[str, str] = field(default_factory=dict)
    governor: str | None = None
    turbo: bool | None = None
    others_cpus: float | None = None
    gpus: tuple[GpuState, ...] = ()


def look_around(
    nvml: types.ModuleType,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    wait: Callable[[float], None] = time.sleep,
) -> Facts:
    """Look at this machine, for a second."""
    allowed = usable_cpus()
    before = read_counters(root, allowed)
    wait(LOOK_S)
    after = read_counters(root, allowed)
    states = [read_gpu(uuid, nvml) for uuid in list_gpus(nvml)]
    slurm = environment.get("SLURM_CPUS_PER_TASK", "")
    return Facts(
        cpus=os.cpu_count() or len(allowed),
        usable_cpus=len(allowed),
        usable_cores=usable_cores(allowed, environment, root),
        quota_cpus=cgroup_quota(root),
        slurm_cpus=int(slurm) if slurm.isdigit() else None,
        thread_settings={name: environment[name] for name in THREAD_SETTINGS if name in environment},
        governor=governor(root),
        turbo=turbo(root),
        others_cpus=counters_between(before, after)["others_cpus"],
        gpus=tuple(state for state in states if state is not None),
    )


def examine(facts: Facts) -> list[str]:
    """Everything that would make numbers worse, each as one line: what, its value, what to do."""
    return [*_host(facts), *(line for gpu in facts.gpus for line in _gpu(gpu))]


def _host(facts: Facts) -> Iterator[str]:
    whole = f"of {facts.cpus} logical CPUs"
    if facts.usable_cpus < facts.cpus:
        yield (
            f"CPU affinity: {facts.usable_cpus} {whole}; the CPU is timed on these alone: start without taskset, or "
            "ask the scheduler for the whole machine"
        )
    if facts.quota_cpus is not None and facts.quota_cpus < facts.usable_cpus:
        yield (
            f"CPU quota: {facts.quota_cpus:g} {whole}; the control group holds the CPU back in bursts: raise the "
            "container's or the service's CPU limit"
        )
    if facts.slurm_cpus is not None and facts.slurm_cpus < facts.usable_cpus:
        yield (
            f"Slurm allocation: {facts.slurm_cpus} {whole}; the CPU is timed on these alone: ask for all of the node's "
            "(--exclusive and --cpus-per-task)"
        )
    for name, value in facts.thread_settings.items():
        yield f"{name}: {value}; it changes how many threads run, and where: unset it before the run"
    cores = {"device": BASELINE, "threads": facts.usable_cores, "physical_cores": facts.usable_cores}
    if others_disturb({**cores, "others_cpus": facts.others_cpus}):
        yield (
            f"load by others: {facts.others_cpus:.1f} CPUs busy; stop other programs, or reserve the whole machine; "
            "`top` shows who it is"
        )
    if facts.governor not in (None, "performance"):
        yield (
            f"CPU governor: {facts.governor}; the clock lags behind the load: sudo cpupower frequency-set --governor "
            "performance"
        )
    if facts.turbo:
        yield (
            "CPU turbo: on; the clock depends on heat and on the cores in use: for the steadiest numbers switch it off "
            "(write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost)"
        )


def _gpu(gpu: GpuState) -> Iterator[str]:
    name = gpu.uuid
    if gpu.processes:
        listed = ", ".join(str(pid) for pid, _ in gpu.processes)
        yield f"{name}: compute processes {listed}; its results would be invalid: stop them, or use another GPU"
    limit, default = gpu.power_limit_w, gpu.power_limit_default_w
    if limit is not None and default is not None and round(limit) < round(default):
        yield (
            f"{name}: power limit {limit:.0f} W, by default {default:.0f} W; raise it: sudo nvidia-smi --id={name} "
            f"--power-limit={default:.0f}"
        )
    slowed = sorted(set(SLOWDOWN) & set(gpu.reasons or ()))
    if slowed:
        yield f"{name}: clock held down now by {', '.join(slowed)}; see to its cooling and its power supply"

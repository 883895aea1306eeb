"""What would make numbers measured on this machine worse, and what to do about it; needs neither torch nor a GPU."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Iterator, Mapping
from pathlib import Path

from crossover.config.words import BASELINE
from crossover.machine.counters import counters_between, read_counters
from crossover.machine.kernel import cgroup_quota, governor, turbo
from crossover.machine.nvml import SLOWDOWN, GpuState, list_gpus, read_gpu, silent_driver
from crossover.machine.threads import physical_cores, usable_cores, usable_cpus
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


def examine(nvml: types.ModuleType, root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> list[str]:
    """Everything that would make numbers worse, each as one line: what, its value, what to do. Takes a second."""
    gpus = [read_gpu(uuid, nvml) for uuid in list_gpus(nvml)]
    silent = silent_driver(nvml, root)
    return [
        *_host(root, environment),
        *([f"GPU: {silent}"] if silent else []),
        *(line for gpu in gpus if gpu for line in _gpu(gpu)),
    ]


def _host(root: Path, environment: Mapping[str, str]) -> Iterator[str]:
    allowed = usable_cpus()
    before = read_counters(root, allowed)
    time.sleep(LOOK_S)
    others = counters_between(before, read_counters(root, allowed))["others_cpus"]
    cpus = os.cpu_count() or len(allowed)
    whole = f"of {cpus} logical CPUs"
    if len(allowed) < cpus:
        yield (
            f"CPU affinity: {len(allowed)} {whole}; the CPU is timed on these alone: start without taskset, or "
            "ask the scheduler for the whole machine"
        )
    quota = cgroup_quota(root)
    if quota is not None and quota < len(allowed):
        yield (
            f"CPU quota: {quota:g} {whole}; the control group holds the CPU back in bursts: raise the "
            "container's or the service's CPU limit"
        )
    slurm = environment.get("SLURM_CPUS_PER_TASK", "")
    if slurm.isdigit() and int(slurm) < len(allowed):
        yield (
            f"Slurm allocation: {slurm} {whole}; the CPU is timed on these alone: ask for all of the node's "
            "(--exclusive and --cpus-per-task)"
        )
    for name in THREAD_SETTINGS:
        if name in environment:
            yield f"{name}: {environment[name]}; it changes how many threads run, and where: unset it before the run"
    cores = usable_cores(allowed, environment, root)
    facts = {"threads": cores, "affinity_cores": physical_cores(allowed, root), "logical_cpus": len(allowed)}
    if others_disturb({**facts, "device": BASELINE, "others_cpus": others, "timed_s": LOOK_S}):
        yield (
            f"load by others: {others:.1f} CPUs busy; stop other programs, or reserve the whole machine; "
            "`top` shows who it is"
        )
    if (clock := governor(root)) not in (None, "performance"):
        yield (
            f"CPU governor: {clock}; the clock lags behind the load: sudo cpupower frequency-set --governor performance"
        )
    if turbo(root):
        yield (
            "CPU turbo: on; the clock depends on heat and on the cores in use: for the steadiest numbers switch it off "
            "(write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost)"
        )


def _gpu(gpu: GpuState) -> Iterator[str]:
    name = gpu.uuid
    if gpu.processes:
        listed = ", ".join(str(pid) for pid, _ in gpu.processes)
        yield f"{name}: compute processes {listed}; results are invalid while they work: stop them, or take another GPU"
    limit, default = gpu.power_limit_w, gpu.power_limit_default_w
    if limit is not None and default is not None and round(limit) < round(default):
        yield (
            f"{name}: power limit {limit:.0f} W, by default {default:.0f} W; raise it: sudo nvidia-smi --id={name} "
            f"--power-limit={default:.0f}"
        )
    slowed = sorted(set(SLOWDOWN) & set(gpu.reasons or ()))
    if slowed:
        yield f"{name}: clock held down now by {', '.join(slowed)}; see to its cooling and its power supply"

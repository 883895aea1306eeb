"""Counters and energy of the host and the GPU, read before a trial, around its timed blocks, and under load."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from crossover.config.words import ENERGY_WINDOW_MIN_S, is_cpu
from crossover.machine.counters import Counters, counters_between, involuntary_switches, read_counters
from crossover.machine.kernel import read_kernel, read_number
from crossover.machine.lease import others_held
from crossover.machine.nvml import GpuState, GpuUse, ask, gpu_between, open_gpu, read_gpu, read_use, with_threads
from crossover.machine.trust import FOREIGN_SHARE, OTHERS_CPUS

SAMPLED_EVERY_US = 1_000_000
"""Minimum period over which the GPU's use by processes is read, since NVML samples it every 1/6 to 1 s."""

MILLI = 1e-3
MICRO = 1e-6

PACKAGE_MAX_W = 1000.0
"""Assumed upper bound on the power of a CPU package."""


@dataclass(frozen=True)
class Edge:
    """Readings right before or after the timed blocks."""

    at_us: int
    """System time in microseconds, as in NVML's samples."""
    host: Counters
    gpu: GpuUse
    energy: Any
    other_leases: int | None
    """Number of other leased GPUs of this host; None for a trial without a leased GPU."""


class Surroundings:
    def __init__(
        self, device: str, uuid: str | None, nvml: types.ModuleType, cpus: Collection[int] | None = None
    ) -> None:
        """`cpus` are the logical CPUs of the trial's processes, by default those of this one."""
        self.device = device
        self.uuid = uuid
        self.nvml = nvml
        self.cpus = cpus
        self.load_before = os.getloadavg()[0]
        self.gpu_before = read_gpu(uuid, nvml)
        self.gpu_after: GpuState | None = None
        self.edges: list[Edge] = []

    def counts(self) -> dict[str, int]:
        """Read the counters right before or after the timed blocks; return counters whose increase the caller computes.

        Energy and the host's counters are read closest to the timed blocks, so that they do not include reading the
        GPU's counters.
        """
        if self.edges:
            energy, host = self._energy(), read_counters(cpus=self.cpus)
            since_us = min(self.edges[0].at_us, _now_us() - SAMPLED_EVERY_US)
            gpu = read_use(self.uuid, self.nvml, since_us)
        else:
            gpu, host, energy = read_use(self.uuid, self.nvml), read_counters(cpus=self.cpus), self._energy()
        other_leases = None if self.uuid is None else others_held(self.uuid, os.environ)
        self.edges.append(Edge(_now_us(), host, gpu, energy, other_leases))
        counts = {"involuntary_switches": involuntary_switches()}
        if self.device == "cuda":
            counts["allocator_retries"] = torch.cuda.memory_stats()["num_alloc_retries"]
        return counts

    def _energy(self) -> Any:
        return read_rapl() if is_cpu(self.device) else read_gpu_energy_mj(self.uuid, self.nvml)

    def read_under_load(self) -> None:
        """Read the GPU's state. Call this while steps are queued, since an idle GPU lowers its clock."""
        self.gpu_after = read_gpu(self.uuid, self.nvml)

    def columns(self, timed_s: float, timed_steps: int) -> dict[str, Any]:
        first, last = self.edges
        columns = counters_between(first.host, last.host)
        columns |= gpu_between(self.gpu_before, self.gpu_after, (first.gpu, last.gpu), with_threads({os.getpid()}))
        leases = [edge.other_leases for edge in self.edges if edge.other_leases is not None]
        columns["leased_beside"] = max(leases, default=None)
        if is_cpu(self.device):
            # RAPL measures whole packages, including other processes on their CPUs.
            shared = (columns["host_others_cpus"] or 0) > OTHERS_CPUS
            used_j = package_joules(first.energy, last.energy, timed_s)
            return columns | energy_columns(used_j, "RAPL", timed_s, timed_steps, shared)
        used_j = None if first.energy is None or last.energy is None else (last.energy - first.energy) * MILLI
        share = columns["foreign_gpu_share"]
        shared = bool(columns["foreign_processes"]) if share is None else share > FOREIGN_SHARE
        return columns | energy_columns(used_j, "NVML", timed_s, timed_steps, shared)


def _now_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class RaplCounter:
    """The energy counter of a CPU package in microjoules, and its largest value before it wraps."""

    energy_uj: int
    range_uj: int


def read_gpu_energy_mj(uuid: str | None, nvml: types.ModuleType) -> int | None:
    """Energy in mJ since the GPU's driver was loaded; None without a GPU or a counter, as for a MIG instance."""
    with open_gpu(uuid, nvml) as gpu:
        if gpu is None or gpu.is_instance:
            return None
        return ask(nvml, lambda: int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu.board)))


def read_rapl(root: Path = Path("/")) -> dict[str, RaplCounter] | None:
    """Energy counters of all CPU packages by name; None if there is none, or if one cannot be read.

    On most systems only root may read them. Domains within a package and the platform (psys) are left out, since their
    energy would count twice. Source: the kernel's Documentation/power/powercap.
    """
    counters = {}
    for folder in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        name = read_kernel(folder / "name")
        if name is None or not name.startswith("package-"):
            continue
        energy_uj, range_uj = read_number(folder / "energy_uj"), read_number(folder / "max_energy_range_uj")
        if energy_uj is None or range_uj is None:
            return None
        counters[name] = RaplCounter(energy_uj, range_uj)
    return counters or None


def package_joules(
    before: Mapping[str, RaplCounter] | None, after: Mapping[str, RaplCounter] | None, window_s: float
) -> float | None:
    """Energy of all CPU packages between two readings; None without counters, or if it may exceed a counter's range."""
    if not before or not after or before.keys() != after.keys():
        return None
    if any(counter.range_uj * MICRO < PACKAGE_MAX_W * window_s for counter in after.values()):
        return None
    return MICRO * sum((after[name].energy_uj - before[name].energy_uj) % (after[name].range_uj + 1) for name in after)


def energy_columns(used_j: float | None, source: str, window_s: float, steps: int, shared: bool) -> dict[str, Any]:
    """Energy columns of `Measurement`; None without a counter, for a window under 10 s, or if others use the device."""
    if used_j is None or used_j <= 0 or window_s < ENERGY_WINDOW_MIN_S or steps < 1 or shared:
        return {"energy_j": None, "energy_per_step_j": None, "energy_source": None}
    return {"energy_j": used_j, "energy_per_step_j": used_j / steps, "energy_source": source}

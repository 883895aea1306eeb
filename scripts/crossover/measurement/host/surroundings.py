"""What host and GPU did around a trial: read before the device is opened, while it works, and after."""

from __future__ import annotations

import os
import time
import types
from dataclasses import dataclass
from typing import Any

import torch

from crossover.config.words import is_cpu
from crossover.machine.counters import Counters, counters_between, involuntary_switches, read_counters
from crossover.machine.lease import others_held
from crossover.machine.nvml import GpuState, GpuUse, gpu_between, read_gpu, read_use, with_threads
from crossover.machine.trust import FOREIGN_SHARE, OTHERS_CPUS
from crossover.measurement.host.energy import energy_columns, package_joules, read_gpu_energy_mj, read_rapl

MILLI = 1e-3

SAMPLED_EVERY_US = 1_000_000
"""NVML samples what processes use of a GPU every 1/6 to 1 s, so that a shorter timing looks so far back."""


@dataclass(frozen=True)
class Edge:
    """What is read at one end of the timed blocks."""

    at_us: int
    """Microseconds of the system's clock, as NVML stamps its samples."""
    host: Counters
    gpu: GpuUse
    energy: Any
    beside: int | None
    """Other GPUs of the host that were leased."""


class Surroundings:
    """Readings of a trial's host and GPU, in the order in which they happen."""

    def __init__(self, device: str, uuid: str | None, nvml: types.ModuleType) -> None:
        self.device = device
        self.uuid = uuid
        self.nvml = nvml
        self.load_before = os.getloadavg()[0]
        self.gpu_before = read_gpu(uuid, nvml)
        self.gpu_after: GpuState | None = None
        self.edges: list[Edge] = []

    def counts(self) -> dict[str, int]:
        """Counters that only rise, to read right before and right after the timed blocks; all else is read with them.

        Energy is read next to the blocks, then the host's counters, so that the rest of the reading is in neither.
        """
        if self.edges:
            energy, host = self._energy(), read_counters()
            since_us = min(self.edges[0].at_us, _now_us() - SAMPLED_EVERY_US)
            gpu = read_use(self.uuid, self.nvml, since_us)
        else:
            gpu, host, energy = read_use(self.uuid, self.nvml), read_counters(), self._energy()
        beside = None if self.uuid is None else others_held(self.uuid, os.environ)
        self.edges.append(Edge(_now_us(), host, gpu, energy, beside))
        counts = {}
        if (switches := involuntary_switches()) is not None:
            counts["involuntary_switches"] = switches
        if self.device == "cuda":
            counts["allocator_retries"] = torch.cuda.memory_stats()["num_alloc_retries"]
        return counts

    def _energy(self) -> Any:
        return read_rapl() if is_cpu(self.device) else read_gpu_energy_mj(self.uuid, self.nvml)

    def read_under_load(self) -> None:
        """Read clock, reasons and processes; call it with steps queued, because an idle GPU lowers its clock."""
        self.gpu_after = read_gpu(self.uuid, self.nvml)

    def columns(self, timed_s: float, timed_steps: int) -> dict[str, Any]:
        """Columns of `Measurement` about the time between the readings."""
        first, last = self.edges
        found = counters_between(first.host, last.host)
        found |= gpu_between(self.gpu_before, self.gpu_after, (first.gpu, last.gpu), with_threads({os.getpid()}))
        found["leased_beside"] = max((edge.beside for edge in self.edges if edge.beside is not None), default=None)
        if is_cpu(self.device):
            # The counters are those of whole packages, so whoever used any of their CPUs has a share in them.
            shared = (found["host_others_cpus"] or 0) > OTHERS_CPUS
            used_j = package_joules(first.energy, last.energy, timed_s)
            return found | energy_columns(used_j, "RAPL", timed_s, timed_steps, shared)
        used_j = None if first.energy is None or last.energy is None else (last.energy - first.energy) * MILLI
        share = found["foreign_gpu_share"]
        shared = bool(found["foreign_processes"]) if share is None else share > FOREIGN_SHARE
        return found | energy_columns(used_j, "NVML", timed_s, timed_steps, shared)


def _now_us() -> int:
    return time.time_ns() // 1000

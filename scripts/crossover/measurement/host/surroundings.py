"""What host and GPU did around a trial: read before the device is opened, while it works, and after."""

from __future__ import annotations

import os
import types
from typing import Any

import torch

from crossover.config.words import is_cpu
from crossover.machine.counters import Counters, counters_between, involuntary_switches, read_counters
from crossover.machine.lease import others_held
from crossover.machine.nvml import GpuState, gpu_between, read_gpu, with_threads
from crossover.machine.trust import others_disturb
from crossover.measurement.host.energy import energy_columns, package_joules, read_gpu_energy_mj, read_rapl

MILLI = 1e-3


class Surroundings:
    """Readings of a trial's host and GPU, in the order in which they happen."""

    def __init__(self, device: str, uuid: str | None, nvml: types.ModuleType) -> None:
        self.device = device
        self.uuid = uuid
        self.nvml = nvml
        self.gpu_before = read_gpu(uuid, nvml)
        self.gpu_after: GpuState | None = None
        self.counters_before = read_counters()
        self.counters_after: Counters | None = None
        self.energy: list[Any] = []
        self.beside: list[int] = []

    def counts(self) -> dict[str, int]:
        """Counters to read right before and right after the timed blocks; energy and leases are read with them."""
        if self.uuid is not None:
            self.beside.append(others_held(self.uuid, os.environ))
        self.energy.append(read_rapl() if is_cpu(self.device) else read_gpu_energy_mj(self.uuid, self.nvml))
        counts = {}
        if (switches := involuntary_switches()) is not None:
            counts["involuntary_switches"] = switches
        if self.device == "cuda":
            counts["allocator_retries"] = torch.cuda.memory_stats()["num_alloc_retries"]
        return counts

    def read_under_load(self) -> None:
        """Read clock, reasons and processes; call it with steps queued, because an idle GPU lowers its clock."""
        self.gpu_after = read_gpu(self.uuid, self.nvml)
        self.counters_after = read_counters()

    def columns(self, timed_s: float, timed_steps: int, threads: int, physical_cores: int) -> dict[str, Any]:
        """Columns of `Measurement` about the time between the readings."""
        assert self.counters_after is not None
        found = counters_between(self.counters_before, self.counters_after)
        found |= gpu_between(self.gpu_before, self.gpu_after, with_threads({os.getpid()}))
        found["leased_beside"] = max(self.beside, default=None)
        before, after = self.energy
        if is_cpu(self.device):
            facts = {**found, "device": self.device, "threads": threads, "physical_cores": physical_cores}
            used_j = package_joules(before, after, timed_s)
            return found | energy_columns(used_j, "RAPL", timed_s, timed_steps, others_disturb(facts))
        used_j = None if before is None or after is None else (after - before) * MILLI
        return found | energy_columns(used_j, "NVML", timed_s, timed_steps, found["foreign_processes"])

"""A cell prepared for a job: switches set, device opened, seed set, dataset read, task built, all of it read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pynvml
import torch

from crossover.errors import UnsupportedError
from crossover.machine.nvml import driver_version
from crossover.machine.threads import lacking_cores, usable_cores
from crossover.measurement.host.description import describe_host
from crossover.measurement.process.jobs import Job
from crossover.measurement.step.conditions import Conditions, read_switches, seed_all, set_conditions
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_task, read_dataset

Columns = dict[str, Any]


@dataclass(frozen=True)
class OpenCell:
    """A cell whose switches are set and whose device is open."""

    job: Job
    conditions: Conditions
    columns: Columns
    """What is known before anything is built: the job, host, device and versions, under the names of columns."""

    @property
    def target(self) -> OpenDevice:
        return self.conditions.target

    def arithmetic(self) -> Arithmetic:
        """The cell's arithmetic on its device; raises UnsupportedError if the device or the cores lack it."""
        if reason := lacking_cores(self.job.cell.device, usable_cores()):
            raise UnsupportedError(reason)
        return arithmetic_of(self.job.cell.precision, self.target.device)

    def data(self) -> dict[str, torch.Tensor]:
        return read_dataset(self.job.dataset, self.job.cell.workload)

    def build(self, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic, seed: int) -> Task:
        """Build the cell's task from a seed; raises InvalidError if that moved it or changed a switch."""
        seed_all(seed)
        task = build_task(self.job.cell, data, arithmetic)
        self.conditions.check(task)
        return task


def open_cell(job: Job) -> OpenCell:
    """Set threads and switches and open the device, before a workload is imported, so that what it sets is seen.

    Raises UserError if torch cannot use the device.
    """
    conditions = set_conditions(job.cell, job.threads, job.uuid)
    host, target = describe_host(), conditions.target
    on_cuda = target.device.type == "cuda"
    columns = {
        **job.columns(),
        **host,
        "device_name": target.name or host["cpu_model"],
        "device_uuid": target.uuid,
        "device_memory_bytes": target.memory_bytes,
        "driver_version": driver_version(pynvml) if on_cuda else None,
        "cudnn_version": str(torch.backends.cudnn.version()) if on_cuda else None,
        "backend_settings": json.dumps(read_switches()),
    }
    return OpenCell(job, conditions, columns)


def with_rows(data: Mapping[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
    """The dataset if it has that many rows, else exactly so many: its own, repeated in order."""
    return {name: tensor if len(tensor) >= rows else _repeated(tensor, rows) for name, tensor in data.items()}


def _repeated(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """A tensor's rows again and again, without more memory on the way than the result takes."""
    times = rows // len(tensor)
    whole = times * len(tensor)
    result = tensor.new_empty(rows, *tensor.shape[1:])
    result[:whole].view(times, *tensor.shape).copy_(tensor.expand(times, *tensor.shape))
    result[whole:] = tensor[: rows - whole]
    return result

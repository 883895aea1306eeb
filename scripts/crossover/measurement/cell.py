"""Prepare a cell for its job: apply settings and seed, open the device, build the task, check the settings again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pynvml
import torch

from crossover.errors import InvalidError, UnsupportedError
from crossover.machine.nvml import board_of, driver_version
from crossover.machine.threads import lacking_cores, usable_cores
from crossover.measurement import Tell, ignore
from crossover.measurement.host.description import describe_host
from crossover.measurement.process.jobs import Job, plain_cell
from crossover.measurement.step.conditions import changes, read_switches, seed_all, set_switches, wrong_device
from crossover.measurement.step.devices import OpenDevice, open_device
from crossover.measurement.step.endings import ending, is_mistake, refusal
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_task, read_dataset

THREADS = ("threads", "interop_threads")

Columns = dict[str, Any]


@dataclass(frozen=True)
class OpenCell:
    job: Job
    target: OpenDevice
    switches: Mapping[str, Any]
    """Torch's settings, and on the CPU the numbers of threads."""
    board: str | None
    """UUID of the leased GPU, or of the GPU that contains the leased MIG instance; None if unknown."""
    columns: Columns

    def arithmetic(self) -> Arithmetic:
        """The cell's arithmetic; raises UnsupportedError if the device lacks the precision or the host lacks cores."""
        if reason := lacking_cores(self.job.cell.device, usable_cores()):
            raise UnsupportedError(reason)
        return arithmetic_of(self.job.cell.precision, self.target.device)

    def data(self) -> dict[str, torch.Tensor]:
        return read_dataset(self.job.dataset, self.job.cell.workload)

    def build(self, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic, seed: int, tell: Tell = ignore) -> Task:
        """Build the cell's task with this seed. Raises InvalidError as `check` does."""
        seed_all(seed)
        task = build_task(self.job.cell, data, arithmetic, tell)
        self.check(task)
        return task

    def check(self, task: Task) -> None:
        """Raise InvalidError if the task is on another device, or a torch setting or number of threads has changed."""
        reason = wrong_device(task, self.target, self.job.uuid, self.board)
        reason = reason or changes({**self.switches, **task.switches}, read_switches())
        if reason is not None:
            model = self.job.cell.model
            raise InvalidError(f"{model.shown}: {reason}" if model else reason)

    def ending(self, error: Exception) -> tuple[str, str]:
        """The status and reason of a job that ended with an error.

        Raises RefusedError for an error without a known status, so that the plain cell is tried (see `plain_cell`).
        Raises the error itself if the cell is already plain, or if the error is certainly the user's mistake.
        """
        if (status_and_reason := ending(error, self.target.device)) is not None:
            return status_and_reason
        if self.job.cell == plain_cell(self.job.cell) or is_mistake(error):
            raise error
        raise refusal(error) from error


def open_cell(job: Job) -> OpenCell:
    """Set torch's settings and number of threads, and open the device; raises UserError if torch cannot use the device.

    The workload is imported later, so that its changes of these settings are noticed.
    """
    switches = set_switches(job.cell.precision, job.threads)
    target = open_device(job.cell.device)
    host = describe_host()
    if target.device.type != "cpu":  # a data loader's pinning thread sets the number of threads, but runs no step
        switches = {name: value for name, value in switches.items() if name not in THREADS}
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
    return OpenCell(job, target, switches, board_of(job.uuid, pynvml), columns)


def with_rows(data: Mapping[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
    """Repeat shorter tensors in order until all have at least `rows` rows. Allocates only the result."""
    repeated = dict(data)
    for name, tensor in data.items():
        if len(tensor) < rows:
            repeated[name] = torch.cat([*[tensor] * (rows // len(tensor)), tensor[: rows % len(tensor)]])
    return repeated

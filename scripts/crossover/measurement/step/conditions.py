"""What a job sets of torch and its device before it builds anything, and what must hold until its last timed step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crossover.measurement.process.requests import Job
from crossover.measurement.step.devices import OpenDevice, open_device
from crossover.measurement.step.endings import InvalidError
from crossover.measurement.step.switches import changes, read_switches, set_switches
from crossover.measurement.step.tasks import Task

THREADS = ("threads", "interop_threads")


@dataclass(frozen=True)
class Conditions:
    """The device that was opened, and threads and switches as they were set."""

    target: OpenDevice
    uuid: str | None
    """The leased GPU."""
    switches: Mapping[str, Any]

    def check(self, task: Task) -> None:
        """Raise InvalidError where what ran, or is about to, is not what was asked for."""
        if reason := wrong_device(task, self.target, self.uuid) or changes(self.switches, read_switches()):
            raise InvalidError(reason)


def set_conditions(job: Job) -> Conditions:
    """Set threads and switches and open the device; raises UserError where torch cannot use it.

    To be called before a workload is imported, so that what it sets then is seen.
    """
    switches = set_switches(job.cell.precision, job.threads)
    target = open_device(job.cell.device)
    if target.device.type != "cpu":  # a data loader's thread that pins memory sets them, and no step runs on them
        switches = {name: value for name, value in switches.items() if name not in THREADS}
    return Conditions(target, job.uuid, switches)


def wrong_device(task: Task, target: OpenDevice, uuid: str | None) -> str | None:
    """Why the device that ran is not the one asked for; None if it is."""
    found = {tensor.device.type for tensor in (*task.model.parameters(), *task.resident)}
    if strangers := sorted(found - {target.device.type}):
        return f"tensors lie on {', '.join(strangers)}, not on {target.device.type}: the workload must use its device"
    if uuid is not None and uuid.startswith("GPU-") and target.uuid != uuid:
        return f"{target.uuid} ran, not the leased {uuid}: something changed CUDA_VISIBLE_DEVICES"
    return None

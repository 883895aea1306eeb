"""One try of a search for the largest batch: three steps at one batch size, in a process of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pynvml
import torch

from crossover.errors import UserError
from crossover.measurement.devices import OpenDevice, open_device
from crossover.measurement.execution import prepare
from crossover.measurement.host import describe_host
from crossover.measurement.memory_limit import limit_memory
from crossover.measurement.nvml import driver_version
from crossover.measurement.precision import arithmetic_of, set_switches
from crossover.measurement.requests import BatchTry
from crossover.measurement.trial import early_end, read_dataset, wrong_device
from crossover.measurement.workloads import build_task, workload_code

STEPS = 3
"""The optimizer's state and the gradients of the first are there in the second; the third meets the settled heap."""

HOST_FACTS = (
    "hostname",
    "operating_system",
    "cpu_model",
    "memory_bytes",
    "threads",
    "torch_version",
    "cuda_version",
    "python_version",
    "crossover_version",
)


def run_try(job: BatchTry, begin: Callable[[dict[str, Any]], None]) -> tuple[str, str | None]:
    """Build a cell at its batch size, run it for three steps, and return a status with its reason.

    `ok`: it fits; `oom`: it does not. An error of the workload is `invalid`, since a search must not take it for
    either; its traceback is printed. `begin` is told what ran before the model is built. Raises UserError for a device
    or a dataset that is not there.
    """
    torch.set_num_threads(job.threads)
    target = open_device(job.cell.device)
    begin(_facts(target))
    try:
        reason = _run_steps(job, target)
    except UserError:
        raise
    except Exception as error:
        if (end := early_end(error)) is not None:
            return end
        traceback.print_exc()
        return "invalid", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return ("invalid" if reason else "ok"), reason


def _facts(target: OpenDevice) -> dict[str, Any]:
    """What ran: host, device and versions, under the column names of `Measurement`."""
    host = describe_host()
    return {
        "device_name": target.name or host["cpu_model"],
        "device_uuid": target.uuid,
        "device_memory_bytes": target.memory_bytes,
        "driver_version": driver_version(pynvml) if target.device.type == "cuda" else None,
        **{name: host[name] for name in HOST_FACTS},
    }


def _run_steps(job: BatchTry, target: OpenDevice) -> str | None:
    """Run the steps, each one waited for; returns why the result is invalid, if so."""
    set_switches(job.cell.precision)
    torch.manual_seed(job.seed)
    workload_code(job.cell.workload)  # what it imports is none of the cell's memory
    if job.memory_limit_bytes is not None:
        limit_memory(target, job.memory_limit_bytes)
    task = build_task(
        job.cell,
        with_rows(read_dataset(job.dataset), job.cell.batch_size),
        arithmetic_of(job.cell.precision, target.device),
    )
    if reason := wrong_device(task, target, job.uuid):
        return reason
    execution = prepare(task, job.cell.execution)
    for _ in range(STEPS):
        execution.step()
        target.synchronise()
    return None


def with_rows(data: Mapping[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
    """The dataset if it has that many rows, else one of exactly so many, its own repeated in order."""
    return {name: tensor if len(tensor) >= rows else _repeated(tensor, rows) for name, tensor in data.items()}


def _repeated(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """A tensor's rows again and again, with no more memory on the way than the result takes."""
    times = rows // len(tensor)
    whole = times * len(tensor)
    result = tensor.new_empty(rows, *tensor.shape[1:])
    result[:whole].view(times, *tensor.shape).copy_(tensor.expand(times, *tensor.shape))
    result[whole:] = tensor[: rows - whole]
    return result

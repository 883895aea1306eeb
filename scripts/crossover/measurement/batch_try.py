"""One try of a search for the largest batch: three steps at one batch size, in a process of its own.

Once the largest is known, a last such process also times it: batches x batch size / seconds.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pynvml
import torch

from crossover.errors import InvalidError, UnsupportedError, UserError
from crossover.machine.nvml import driver_version
from crossover.machine.threads import lacking_cores, usable_cores
from crossover.measurement.clock.timing import Stopwatch, time_block, without_garbage_collection
from crossover.measurement.host.host import describe_host
from crossover.measurement.memory.memory_limit import limit_memory
from crossover.measurement.process.requests import BatchTry
from crossover.measurement.step.conditions import Conditions, seed_all, set_conditions
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.endings import early_end
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.precision import SKIPPED_MAX, arithmetic_of
from crossover.measurement.workloads import build_task, read_dataset, workload_code

STEPS = 3
"""The optimizer's state and the gradients of the first are there in the second; the third meets the settled heap."""

TIMED_MAX_S = 10.0
"""About the longest that batches are timed, judged by the last of these steps."""

TIMED_MIN = 3
"""Fewest batches that are timed, however long they take."""

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


def run_try(job: BatchTry, begin: Callable[[dict[str, Any]], None]) -> tuple[str, str | None, dict[str, Any]]:
    """Build a cell at its batch size, run it for three steps, and return a status, its reason, and what was timed.

    `ok`: it fits; `oom`: it does not. An error of the workload is `invalid`, since a search must not take it for
    either; its traceback is printed. `begin` is told what ran before the model is built. Raises UserError for a device
    or a dataset that is not there.
    """
    conditions = set_conditions(job.cell, job.threads, job.uuid)
    begin(_facts(conditions.target) | {"code_key": job.code_key, "packages": job.packages})
    found: dict[str, Any] = {}
    try:
        _run_steps(job, conditions, found)
    except UserError:
        raise
    except Exception as error:
        if (end := early_end(error)) is not None:
            return *end, {}
        traceback.print_exc()
        return "invalid", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", {}
    return "ok", None, found


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


def _run_steps(job: BatchTry, conditions: Conditions, found: dict[str, Any]) -> None:
    """Run the steps, each one waited for, and time batches into `found`."""
    target = conditions.target
    if reason := lacking_cores(job.cell.device, usable_cores()):
        raise UnsupportedError(reason)
    seed_all(job.seed)
    workload_code(job.cell.workload)  # what it imports is none of the cell's memory
    if job.memory_limit_bytes is not None:
        limit_memory(target.device, target.memory_bytes, job.memory_limit_bytes)
    task = build_task(
        job.cell,
        with_rows(read_dataset(job.dataset, job.cell.workload), job.cell.batch_size),
        arithmetic_of(job.cell.precision, target.device),
    )
    conditions.check(task)
    execution = prepare(task, job.cell.execution)
    watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, target.synchronise)
    if not task.arithmetic.run_until_updated(lambda: time_block(execution.step, 1, watch)):
        raise InvalidError(f"the loss scaler skipped {SKIPPED_MAX} updates in a row: what an update needs is not known")
    step_s = [time_block(execution.step, 1, watch).wall_s for _ in range(STEPS)][-1]
    if job.timed_batches:
        found |= time_batches(execution.step, job.timed_batches, step_s, watch)
    conditions.check(task)


def time_batches(step: Callable[[], None], most: int, step_s: float, watch: Stopwatch) -> dict[str, Any]:
    """Time up to `most` batches, waited for once before and once after, after Geifman (docs/method.md).

    Nobody waits in between, so how many fit into TIMED_MAX_S is judged beforehand, by a step that took `step_s`.
    """
    batches = min(most, max(TIMED_MIN, int(TIMED_MAX_S / max(step_s, 1e-9))))
    with without_garbage_collection():
        timed_s = time_block(step, batches, watch).wall_s
    return {"timed_batches": batches, "timed_s": timed_s}


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

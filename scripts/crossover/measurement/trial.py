"""One trial: builds the workload, times it, and says in one row how it went."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from crossover.errors import UserError
from crossover.measurement.devices import OpenDevice, open_device
from crossover.measurement.host import describe_host, load_average, process_age_s
from crossover.measurement.limits import TimeLimitError, time_limit
from crossover.measurement.precision import UnsupportedError, set_precision
from crossover.measurement.timing import (
    Stopwatch,
    Timing,
    find_flags,
    summarise_samples,
    time_steps,
)
from crossover.measurement.workloads import Task, build_task, count_parameters
from crossover.records import Measurement
from crossover.studies import Cell, Effort, workload_traits


@dataclass(frozen=True)
class Request:
    """What to measure."""

    cell: Cell
    trial: int
    seed: int
    dataset: Path
    threads: int
    time_limit_s: float
    effort: Effort
    command: str


def run_trial(request: Request) -> Measurement:
    """Measure one trial in this process.

    Out of memory, a precision that the device lacks and the time limit are rows with a status and a reason.
    Raises UserError for a device or a dataset that is not there.
    """
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    load_before = load_average()
    torch.set_num_threads(request.threads)
    target = open_device(request.cell.device)
    data = _read_dataset(request.dataset)
    outcome = _measure(request, target, data)
    host = describe_host()
    facts: dict[str, Any] = {
        **asdict(request.cell),
        **host,
        "trial": request.trial,
        "size_name": workload_traits(request.cell.workload).size_name,
        "seed": request.seed,
        "started_at": started_at,
        "load_before": load_before,
        "load_after": load_average(),
        "device_name": target.name or host["cpu_model"],
        "device_uuid": target.uuid,
        "device_memory_bytes": target.memory_bytes,
        "driver_version": target.driver_version,
        "cudnn_version": str(torch.backends.cudnn.version()) if target.device.type == "cuda" else None,
        "effort": json.dumps(asdict(request.effort)),
        "command": request.command,
        "process_s": process_age_s(),
    }
    return Measurement(**facts, **outcome)


def _measure(request: Request, target: OpenDevice, data: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The columns that depend on how the trial ended."""
    known: dict[str, Any] = {"parameters": count_parameters(request.cell)}
    try:
        known["backend_settings"] = json.dumps(set_precision(request.cell.precision, target.device))
        torch.manual_seed(request.seed + request.trial)
        with time_limit(request.time_limit_s):
            timing = _time(build_task(request.cell, data, target.device), request, target)
    except UnsupportedError as reason:
        return {**known, "status": "unsupported", "reason": str(reason)}
    except TimeLimitError as reason:
        return {**known, "status": "timeout", "reason": str(reason)}
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return {**known, "status": "oom", "reason": str(error).partition("\n")[0] or type(error).__name__}
    summary = summarise_samples(timing.samples_s)
    return {
        **known,
        "status": "ok",
        "flags": find_flags(timing, request.effort),
        "step_time_s": summary.median_s,
        "step_time_mean_s": summary.mean_s,
        "step_time_iqr_s": summary.iqr_s,
        "severe_outliers": summary.severe_outliers,
        "samples_s": list(timing.samples_s),
        "block_steps": timing.block_steps,
        "timed_s": timing.timed_s,
        "timed_steps": timing.timed_steps,
        "timed_cpu_s": timing.timed_cpu_s,
        "first_step_s": timing.first_step_s,
        "warmup_s": timing.warmup_s,
        "warmup_steps": timing.warmup_steps,
    }


def _time(task: Task, request: Request, target: OpenDevice) -> Timing:
    watch = Stopwatch(time.perf_counter_ns, time.process_time_ns, target.synchronise)
    return time_steps(task.step, task.cycle_steps, request.effort, watch)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: torch's own type, Python's, or the message of the CPU's or MPS."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    messages = ("DefaultCPUAllocator: can't allocate memory", "MPS backend out of memory")
    return any(message in str(error) for message in messages)


def _read_dataset(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"--dataset: {path} does not exist; make it with scripts/make_dataset.py's rule") from None
    except SafetensorError as error:
        raise UserError(f"--dataset: {path} is not a readable safetensors file: {error}") from None

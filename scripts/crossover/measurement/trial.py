"""One trial: builds a cell's workload, measures it, and describes everything around it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pynvml
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from crossover.errors import UserError
from crossover.measurement.correctness import compare_with_reference
from crossover.measurement.devices import OpenDevice, open_device
from crossover.measurement.endings import early_end, unless_out_of_memory
from crossover.measurement.execution import Execution, prepare
from crossover.measurement.flops import SLOW_STEP_S, count_flops
from crossover.measurement.host import describe_host, process_age_s
from crossover.measurement.judgement import Answer
from crossover.measurement.latency import measure_latencies, measure_mistakes, time_cold
from crossover.measurement.memory import measure_memory
from crossover.measurement.memory_split import Subject
from crossover.measurement.nvml import session
from crossover.measurement.precision import UnsupportedError, arithmetic_of, set_switches
from crossover.measurement.profiling import busy_s
from crossover.measurement.requests import Request
from crossover.measurement.surroundings import Surroundings
from crossover.measurement.tasks import Task, TrainingTask
from crossover.measurement.threads import lacking_cores
from crossover.measurement.timing import Stopwatch, find_flags, time_steps
from crossover.measurement.timing_columns import timing_columns
from crossover.measurement.trust import host_flags, why_invalid
from crossover.measurement.workloads import build_model, build_task, count_parameters
from crossover.records import Measurement
from crossover.studies import Cell, workload_traits

Columns = dict[str, Any]


def run_trial(request: Request, begin: Callable[[Columns], None] = lambda _facts: None) -> Measurement:
    """Measure one trial in this process.

    Out of memory, a precision or execution that the device lacks, a step too slow for the time limit and a wrong
    answer are rows with a status and a reason. `begin` is told all columns that are known before the model is built.
    Raises UserError for a device or a dataset that is not there.
    """
    with session(pynvml) if request.uuid else nullcontext():  # opening NVML anew for each reading would cost time
        surroundings = Surroundings(request.cell.device, request.uuid, pynvml)
        torch.set_num_threads(request.threads)
        target = open_device(request.cell.device)
        facts = _known(request, target, surroundings)
        begin(facts)
        outcome = _measure(request, target, surroundings, facts)
    return Measurement(**{**facts, **outcome, "process_s": process_age_s()})


def _known(request: Request, target: OpenDevice, surroundings: Surroundings) -> Columns:
    """The columns that are known before anything is measured."""
    host = describe_host()
    return {
        **asdict(request.cell),
        **host,
        "trial": request.trial,
        "size_name": workload_traits(request.cell.workload).size_name,
        "parameters": count_parameters(request.cell),
        "seed": request.seed,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "load_before": surroundings.counters_before.load,
        "device_name": target.name or host["cpu_model"],
        "device_uuid": target.uuid,
        "device_memory_bytes": target.memory_bytes,
        "driver_version": surroundings.driver_version,
        "cudnn_version": str(torch.backends.cudnn.version()) if target.device.type == "cuda" else None,
        "backend_settings": json.dumps(set_switches(request.cell.precision)),
        "effort": json.dumps(asdict(request.effort)),
        "isolation": request.isolation,
        "attempts": request.attempts,
        "lease_wait_s": request.lease_wait_s,
        "code_version": request.code_version,
        "command": request.command,
    }


def _measure(request: Request, target: OpenDevice, surroundings: Surroundings, facts: Columns) -> Columns:
    """The columns that depend on how the trial ends; what was measured before an early end is kept."""
    columns: Columns = {}
    try:
        reason = _measure_all(request, target, surroundings, facts, columns)
    except Exception as error:
        if (end := early_end(error)) is None:
            raise
        return {**columns, "status": end[0], "reason": end[1]}
    return {**columns, "status": "invalid", "reason": reason} if reason else {**columns, "status": "ok"}


def _measure_all(
    request: Request, target: OpenDevice, surroundings: Surroundings, facts: Columns, columns: Columns
) -> str | None:
    """Fill `columns` pass by pass: time, numerical check, memory, profile; returns why the result is invalid, if so."""
    cell = request.cell
    if reason := lacking_cores(cell.device, facts["physical_cores"]):
        raise UnsupportedError(reason)
    torch.manual_seed(request.seed + request.trial)
    task = build_task(cell, read_dataset(request.dataset), arithmetic_of(cell.precision, target.device))
    if reason := wrong_device(task, target, request.uuid) or wrong_threads(target, request.threads):
        return reason
    execution = prepare(task, cell.execution)
    watch = _stopwatch(target, surroundings, execution)
    cold_s, least_steps = _cold_steps(request, execution, watch)
    columns["latencies_cold_s"] = list(cold_s) or None
    timing = time_steps(
        execution.step, task.cycle_steps, request.effort, watch, request.time_limit_s, cold_s, least_steps
    )
    for _ in range(timing.block_steps):  # keeps the device at work until its clock is read
        execution.step()
    surroundings.read_under_load()
    target.synchronise()
    columns |= timing_columns(timing) | {"compile_s": execution.compile_s()}
    columns |= surroundings.columns(timing, facts["threads"], facts["physical_cores"])
    columns |= measure_latencies(execution.step, request.latency_steps, watch)
    if request.latency_mistakes:
        columns |= measure_mistakes(task, cell.execution, execution.step, request.latency_steps, watch)
    # The steps may have moved it, or have set the threads.
    if reason := wrong_device(task, target, request.uuid) or wrong_threads(target, request.threads):
        return reason
    diverged = not _finite(task)

    answer, checked = _check(task, cell)
    columns |= checked
    columns |= _memory_pass(task, execution, target, cell.execution)
    if request.trial == 1:  # the profiler takes a second to start, and its answer varies little between trials
        columns |= _profile(execution, target, columns["step_time_s"])
    if request.trial == 1 or columns["step_time_s"] < SLOW_STEP_S:
        columns["flops_per_step"] = unless_out_of_memory(lambda: count_flops(task.step, cell.execution), None)
    columns["flags"] = [
        *find_flags(timing, request.effort),
        *host_flags({**facts, **columns}),
        *(["diverged"] if diverged else []),
        *(["unchecked"] if answer.unchecked else []),
    ]
    columns["reason"] = answer.unchecked
    return not_compiled(cell.execution, execution) or answer.wrong or why_invalid(columns)


def _check(task: Task, cell: Cell) -> tuple[Answer, Columns]:
    """The numerical check, and the workload's own, which is left out where it does not fit into memory."""
    start_s = time.perf_counter()
    answer = compare_with_reference(task, lambda: build_model(cell), cell.precision, cell.execution)
    own = unless_out_of_memory(task.own_errors, None) or {}
    found = {"relative_error": answer.errors.get("result"), "gradient_error": answer.errors.get("gradient"), **own}
    return answer, {name: _number(error) for name, error in found.items()} | {"check_s": time.perf_counter() - start_s}


def _cold_steps(request: Request, execution: Execution, watch: Stopwatch) -> tuple[tuple[float, ...], int]:
    """Seconds of the first steps where latency is to be measured without warm-up, and the least steps after timing."""
    if not request.latency_mistakes:
        return (), request.latency_steps
    later_steps = 2 * request.latency_steps  # synchronised, and not; there may be more
    return time_cold(execution.step, request.latency_steps, watch, request.time_limit_s, later_steps), later_steps


def _stopwatch(target: OpenDevice, surroundings: Surroundings, execution: Execution) -> Stopwatch:
    return Stopwatch(
        wall_ns=time.perf_counter_ns,
        cpu_ns=time.process_time_ns,
        synchronise=target.synchronise,
        mark=target.mark,
        between_s=target.between_s,
        counts=lambda: surroundings.counts(execution.compilations),
    )


def _memory_pass(task: Task, execution: Execution, target: OpenDevice, how: str) -> Columns:
    """Memory of a step; its seconds count as `memory_pass_s`. The parts of a step that is not eager are not known."""
    start_s = time.perf_counter()
    subject = Subject(
        step=execution.step,
        model=task.model,
        optimizers=() if task.optimizer is None else (task.optimizer,),
        resident=task.resident,
        eager_step=task.step if how == "eager" else None,
    )
    found = measure_memory(subject, target.device)
    return {**found, "memory_pass_s": time.perf_counter() - start_s}


def _profile(execution: Execution, target: OpenDevice, step_time_s: float) -> Columns:
    """Device time with a kernel running, and the share of a step in which there is none."""
    busy = busy_s(execution.step, target.device, target.synchronise, step_time_s)
    share = None if busy is None else max(0.0, 1 - busy / step_time_s)
    return {"device_busy_s": busy, "host_bound_share": share}


def _finite(task: Task) -> bool:
    """Whether a training's weights are numbers still."""
    return not isinstance(task, TrainingTask) or all(bool(torch.isfinite(p).all()) for p in task.model.parameters())


def _number(value: float | None) -> float | None:
    """The value, or None where it is not a finite number: the row's reason says so."""
    return value if value is None or math.isfinite(value) else None


def wrong_device(task: Task, target: OpenDevice, uuid: str | None) -> str | None:
    """Why the device that ran is not the one asked for; None if it is."""
    found = {tensor.device.type for tensor in (*task.model.parameters(), *task.resident)}
    if strangers := sorted(found - {target.device.type}):
        return f"tensors lie on {', '.join(strangers)}, not on {target.device.type}: the workload must use its device"
    if uuid is not None and uuid.startswith("GPU-") and target.uuid != uuid:
        return f"{target.uuid} ran, not the leased {uuid}: something changed CUDA_VISIBLE_DEVICES"
    return None


def wrong_threads(target: OpenDevice, threads: int) -> str | None:
    """Why a CPU step did not run on the threads asked for; None if it did, and on every other device."""
    found = torch.get_num_threads()
    if target.device.type != "cpu" or found == threads:
        return None
    return f"torch computes on {found} threads, not on {threads}: the workload, or what it imports, must not set them"


def not_compiled(asked: str, execution: Execution) -> str | None:
    """Why a compiled cell measured the eager step; None if it did not."""
    if asked == "compile" and execution.compilations() == 0:
        return "torch.compile compiled nothing, so that the eager step was measured: something switches it off"
    return None


def read_dataset(path: str | None) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the host, none without a path; raises UserError for another file."""
    if path is None:
        return {}
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"--dataset: {path} does not exist; make it with scripts/make_dataset.py's rule") from None
    except SafetensorError as error:
        raise UserError(f"--dataset: {path} is not a readable safetensors file: {error}") from None

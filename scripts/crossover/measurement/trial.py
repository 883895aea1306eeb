"""One trial: builds a cell's workload, measures it, and describes everything around it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime

import pynvml
import torch

from crossover.config.studies import Cell
from crossover.config.words import is_cpu
from crossover.config.workloads import workload_traits
from crossover.machine.nvml import session
from crossover.machine.threads import lacking_cores
from crossover.measurement.clock.latency import measure_latencies, mistaken_ways, right_ways, time_cold
from crossover.measurement.clock.passes import Columns, Passes
from crossover.measurement.clock.profiling import busy_s
from crossover.measurement.clock.timing import Stopwatch, find_flags, time_block, time_steps
from crossover.measurement.clock.timing_columns import timing_columns
from crossover.measurement.host.host import describe_host, process_age_s
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.memory.memory_pass import measure_memory
from crossover.measurement.memory.memory_split import Subject
from crossover.measurement.process.requests import Request
from crossover.measurement.step.conditions import Conditions, set_conditions
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.dataset_file import read_dataset
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.endings import InvalidError, early_end, unless_out_of_memory
from crossover.measurement.step.execution import Execution, not_compiled, prepare
from crossover.measurement.step.flops import SLOW_STEP_S, count_flops
from crossover.measurement.step.judgement import Answer
from crossover.measurement.step.precision import UnsupportedError, arithmetic_of
from crossover.measurement.step.seeds import seed_all
from crossover.measurement.step.switches import SwitchWatch, changes, read_switches
from crossover.measurement.step.tasks import Task, TrainingTask
from crossover.measurement.workloads import build_model, build_task, count_parameters
from crossover.tables.columns import Measurement


def run_trial(
    request: Request,
    begin: Callable[[Columns], None] = lambda _facts: None,
    keep: Callable[[Columns], None] = lambda _kept: None,
) -> Measurement:
    """Measure one trial in this process.

    Out of memory, a precision or execution that the device lacks, a step too slow for the time limit and a wrong
    answer are rows with a status and a reason. `begin` is told all columns that are known before the model is built,
    `keep` at the start of each pass after the timing what to keep if the pass does not end. Raises UserError for a
    device or a dataset that is not there.
    """
    with session(pynvml) if request.uuid else nullcontext():  # opening NVML anew for each reading would cost time
        surroundings = Surroundings(request.cell.device, request.uuid, pynvml)
        conditions = set_conditions(request)
        facts = _known(request, conditions.target, surroundings)
        begin(facts)
        columns: Columns = {}
        try:
            outcome = _measure(request, conditions, surroundings, facts, columns, keep)
        except Exception as error:
            if (end := early_end(error)) is None:
                raise
            outcome = {**columns, "status": end[0], "reason": end[1]}  # what was measured before it is kept
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
        "backend_settings": json.dumps(read_switches()),
        "effort": json.dumps(asdict(request.effort)),
        "isolation": request.isolation,
        "attempts": request.attempts,
        "lease_wait_s": request.lease_wait_s,
        "code_version": request.code_version,
        "code_key": request.code_key,
        "packages": request.packages,
        "command": request.command,
    }


def _measure(
    request: Request,
    conditions: Conditions,
    surroundings: Surroundings,
    facts: Columns,
    columns: Columns,
    keep: Callable[[Columns], None],
) -> Columns:
    """Fill `columns` with the time, then pass by pass; returns them with flags, status and reason."""
    cell, target = request.cell, conditions.target
    if reason := lacking_cores(cell.device, facts["physical_cores"]):
        raise UnsupportedError(reason)
    seed_all(request.seed + request.trial)
    task = build_task(cell, read_dataset(request.dataset, cell.workload), arithmetic_of(cell.precision, target.device))
    conditions.check(task)
    execution = prepare(task, cell.execution)
    watch = _stopwatch(target, surroundings, execution)
    latency_steps, limit_s = request.latency_steps, request.time_limit_s
    cold_s = time_cold(execution.step, latency_steps, watch, limit_s, latency_steps) if request.latency_mistakes else ()
    columns["latencies_cold_s"] = list(cold_s) or None
    ran_s = cold_s or _skipped_steps(task, execution, watch)
    timing = time_steps(execution.step, task.cycle_steps, request.effort, watch, limit_s, ran_s, latency_steps)
    for _ in range(timing.block_steps):  # keeps the device at work until its clock is read
        execution.step()
    surroundings.read_under_load()
    target.synchronise()
    columns |= timing_columns(timing) | {"compile_s": execution.compile_s()}
    columns |= surroundings.columns(timing, facts["threads"], facts["physical_cores"])
    columns["backend_settings"] = json.dumps(read_switches())
    conditions.check(task)  # the steps may have moved the model, or have set something
    flags = find_flags(timing)
    if not unless_out_of_memory(lambda: _finite(task), True):
        flags.append("diverged")
    passes = Passes(facts, columns, flags, not_compiled(cell.execution, execution), keep)

    def latencies() -> Columns:
        ways = right_ways(execution.step, watch)
        if request.latency_mistakes and not is_cpu(cell.device):  # a CPU has nothing to wait for, and nothing to move
            ways |= mistaken_ways(task, cell.execution, execution.step, watch)
        found = measure_latencies(ways, latency_steps, request.seed + request.trial)
        columns["backend_settings"] = json.dumps(read_switches())
        conditions.check(task)
        return found

    def check() -> Columns:
        answer, checked = _check(task, cell)
        passes.wrong = passes.wrong or answer.wrong
        passes.checked = answer.unchecked is None
        if answer.unchecked:
            passes.notes.append(answer.unchecked)
        return checked

    step_time_s = columns["step_time_s"]
    later = {"latencies": latencies} if latency_steps else {}
    later |= {
        "numerical check": check,
        "memory pass": lambda: _memory_pass(task, execution, target, cell.execution),
    }
    if request.trial == 1:  # the profiler takes a second to start, and its answer varies little between trials
        later["profile"] = lambda: _profile(execution, target, step_time_s)
    if request.trial == 1 or step_time_s < SLOW_STEP_S:
        later["count of operations"] = lambda: _count(task, cell.execution, conditions)
    passes.run(later)
    return passes.row()


def _check(task: Task, cell: Cell) -> tuple[Answer, Columns]:
    """The numerical check, and the workload's own, which is left out where it does not fit into memory."""
    start_s = time.perf_counter()
    answer = compare_with_reference(task, lambda: build_model(cell), cell.precision, cell.execution)
    own = unless_out_of_memory(task.own_errors, None) or {}
    found = {"relative_error": answer.errors.get("result"), "gradient_error": answer.errors.get("gradient"), **own}
    return answer, {name: _number(error) for name, error in found.items()} | {"check_s": time.perf_counter() - start_s}


def _skipped_steps(task: Task, execution: Execution, watch: Stopwatch) -> tuple[float, ...]:
    """Seconds of the first steps, up to one that a loss scaler lets update the weights; none without a scaler.

    Else a slow step, of which few run, would be timed without its optimizer.
    """
    ran_s: list[float] = []
    task.arithmetic.run_until_updated(lambda: ran_s.append(time_block(execution.step, 1, watch).wall_s))
    return tuple(ran_s)


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
    task.arithmetic.run_until_updated(execution.step)  # the check has left fresh weights, whose gradients may overflow
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


def _count(task: Task, how: str, conditions: Conditions) -> Columns:
    """Operations of a step; on the way, that it leaves the switches alone also where it sets them back at its end."""
    with SwitchWatch(conditions.switches) as seen:
        flops = count_flops(task.step, how)
    if reason := changes(seen.asked, seen.found):
        raise InvalidError(reason)
    return {"flops_per_step": flops}


def _finite(task: Task) -> bool:
    """Whether a training's weights are numbers still."""
    return not isinstance(task, TrainingTask) or all(bool(torch.isfinite(p).all()) for p in task.model.parameters())


def _number(value: float | None) -> float | None:
    """The value, or None where it is not a finite number: the row's reason says so."""
    return value if value is None or math.isfinite(value) else None

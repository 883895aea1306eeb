"""One trial: time a cell's step, then run the passes after the timing, such as the numerical check."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pynvml
import torch

from crossover.config.words import COLD, LOADING, is_cpu, unit_of_side
from crossover.errors import InvalidError, UnsupportedError
from crossover.machine.counters import busy_cores, queued_ns
from crossover.machine.nvml import session
from crossover.machine.trust import host_flags, may_pass, why_invalid
from crossover.measurement import Tell, ignore
from crossover.measurement.cell import Columns, OpenCell, open_cell
from crossover.measurement.clock.cold import CALLS, evict_caches
from crossover.measurement.clock.latency import (
    LEAST_STEPS,
    Method,
    correct_methods,
    fitting,
    measure_latencies,
    mistaken_methods,
    time_cold,
)
from crossover.measurement.clock.profiling import COPY_IN, COPY_OUT, PROFILED, profile_device
from crossover.measurement.clock.timing import Phases, Step, Stopwatch, process_age_s, time_block, time_steps
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.memory.memory_pass import Subject, measure_memory, split_memory
from crossover.measurement.modules import parameters_of
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.remedies import LONGEST_STEP_S, LONGEST_TWICE_S, time_remedies
from crossover.measurement.step.conditions import SwitchWatch, changes, read_switches
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.endings import early_end, first_line, is_mistake, is_out_of_memory, original
from crossover.measurement.step.execution import Execution, compiled_graphs, prepare
from crossover.measurement.step.operators import count_work
from crossover.measurement.step.tasks import CheckResult, InferenceTask, Task, TrainingTask
from crossover.measurement.step.timed_check import compare_with_eager
from crossover.measurement.workloads import build_model, build_task, count_parameters
from crossover.tables.columns import Measurement


def run_trial(job: TrialJob, tell: Tell = ignore, kind: Callable[..., Trial] | None = None) -> Measurement:
    """Measure one trial in this process.

    Without a valid result, the row's `status` is `oom`, `unsupported`, `timeout` or `invalid`, and `reason` says why.
    Raises UserError if the device or the dataset is missing, and other errors as `OpenCell.ending` does.
    """
    with session(pynvml) if job.uuid else nullcontext():  # opens NVML once for all readings
        phases = Phases(process_age_s())
        cpus = [cpu for cpus in job.rank_cpus for cpu in cpus] if job.rank_cpus else None
        surroundings = Surroundings(unit_of_side(job.cell.device), job.uuid, pynvml, cpus)
        cell = open_cell(job)
        facts = cell.columns | {
            "parameters": count_parameters(job.cell),
            "effort": json.dumps(asdict(job.effort)),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "load_before": surroundings.load_before,
        }
        phases.end("context")
        tell({"begun": facts})
        trial = (kind or Trial)(job, cell, surroundings, phases, columns=dict(facts))

        def tell_and_add(message: dict[str, Any]) -> None:
            trial.columns |= message.get("known", {})
            tell(message)

        try:
            trial.measure_time(tell_and_add)
            trial.run_passes(tell)
            row = trial.row()
        except Exception as error:
            status, reason = cell.ending(error)
            row = {**trial.columns, "status": status, "reason": reason}
    return Measurement(**row, spent_s=phases.to_json())


FAILING = {
    "readings of host and device": "the host or the device's driver does not answer",
    "check of the weights": "they cannot be read",
    "memory split": "the step fails while each of its operations is observed",
    "profile": "the step fails under torch's profiler",
    "count of operations": "the step fails while each of its operations is observed",
    "remedies": "the step fails with one of them",
}
"""Why a reading or a pass after the timing fails, if neither memory nor the user's code is to blame."""

TRIALS_WITH_REMEDIES = 3
"""Trials per cell in which remedies are timed, enough for a confidence interval of their gain."""


@dataclass
class Trial:
    job: TrialJob
    cell: OpenCell
    surroundings: Surroundings
    phases: Phases
    columns: Columns
    task: Task = field(init=False)
    execution: Execution = field(init=False)
    watch: Stopwatch = field(init=False)
    timed_step: Step = field(init=False)
    flags: list[str] = field(default_factory=list)
    wrong: str | None = None
    """Why the step is wrong, according to the numerical check or the profile."""
    check: str = "not_checked"
    """`passed` if all comparisons were made, `waived` if the study leaves one out; `failed` in the row if `wrong`."""
    notes: list[str] = field(default_factory=list)
    failed_passes: list[str] = field(default_factory=list)
    """Passes and readings after the timing that raised an error, as "name: why it was not done"."""

    def measure_time(self, tell: Tell) -> None:
        """Build the task, warm up, and time the step."""
        job, graphs_before = self.job, compiled_graphs()
        self.task = task = self._build(tell)
        self.execution = execution = self._prepare()
        self.watch = watch = self._stopwatch()
        self.phases.end("build")
        later_steps = min(job.latency_steps, LEAST_STEPS)  # the latencies take at least this many
        ran_s: list[float] = []

        def first_step() -> None:
            ran_s.append(time_block(execution.step, 1, watch).wall_s)
            task.check_batch()

        if job.latency_mistakes:
            ran_s += time_cold(execution.step, later_steps, watch, job.time_limit_s, later_steps)
            self.columns["latencies_cold_s"] = ran_s
        else:
            # A slow step is timed only a few times, and the loss scaler must not skip the update of any of these.
            task.arithmetic.run_until_updated(first_step)
            if not ran_s:
                first_step()
        task.check_batch()
        if (parameters := task.count_parameters()) is not None:
            self.columns["parameters"] = parameters
        self.timed_step = execution.timed_step()
        self.phases.end("first steps")
        calls = CALLS if job.cell.protocol == COLD else None
        limits = (job.time_limit_s, ran_s, later_steps, job.cell.protocol in LOADING, calls)
        effort = job.effort.on(job.cell.device, job.cell.execution)
        timed, self.flags = time_steps(self.timed_step, task.cycle_steps, effort, watch, *limits)
        if calls:
            self.watch = watch = replace(watch, before=None)  # frees the memory of what evicts the caches
        samples = timed.pop("samples") / timed["timed_steps"]
        timed["samples_per_step"] = (task.samples or job.cell.batch_size) if task.samples_taken is None else samples
        timed["sample_name"] = task.sample_name
        self.columns |= timed | {"compile_s": execution.compile_s(), "dynamic_shapes": execution.dynamic_shapes}
        if task.is_function and job.trial == 1 and is_still_computing(watch.cpu_ns):
            raise InvalidError(
                "its step returns before its work is done: the process still computes 0.3 s later; make the function "
                "wait for the threads that it starts"
            )
        with self._keep_time("readings of host and device"):
            self._read_surroundings()
        self.phases.end("warm-up and timing")
        self._check_settings()  # since a step may move the model or change a setting
        with self._keep_time("check of the weights"):
            if not has_finite_weights(task):
                self.flags.append("diverged")
        if job.cell.execution == "compile" and execution.compilations() == 0:
            raise UnsupportedError(
                "torch.compile compiled nothing, so the eager step ran: torch skips scripted modules and recurrent "
                "layers, or its compiler is disabled"
            )
        if job.cell.execution == "eager" and compiled_graphs() > graphs_before:
            self.notes.append(
                "the model compiles itself, so the step is not eager; without its torch.compile, "
                "`executions: [eager, compile]` measures both"
            )

    def _build(self, tell: Tell) -> Task:
        return self.cell.build(self.cell.data(), self.cell.arithmetic(), self.job.seed + self.job.trial, tell)

    def _prepare(self) -> Execution:
        return prepare(self.task, self.job.cell.execution)

    def _stopwatch(self) -> Stopwatch:
        task, execution, target = self.task, self.execution, self.cell.target
        return Stopwatch(
            queued_ns=queued_ns,
            synchronise=self._wait,
            mark=target.mark,
            between_s=target.between_s,
            counts=lambda: {
                "recompiles": execution.compilations(),
                "samples": task.samples_taken or 0,
                **self.surroundings.counts(),
            },
            around=execution.around,
            before=evict_caches(target.device, target.synchronise) if self.job.cell.protocol == COLD else None,
        )

    def _wait(self) -> None:
        self.cell.target.synchronise()
        if self.execution.check_compilations is not None:
            self.execution.check_compilations()

    def _read_surroundings(self) -> None:
        """Read the GPU's state while steps run, since an idle GPU lowers its clock."""
        if not is_cpu(self.job.cell.device):
            for _ in range(self.columns["block_steps"]):
                self.execution.step()
        self.surroundings.read_under_load()
        self.cell.target.synchronise()
        self.columns |= self.surroundings.columns(self.columns["timed_s"], self.columns["timed_steps"])

    def _check_settings(self) -> None:
        self.columns["backend_settings"] = json.dumps(read_switches())
        self.cell.check(self.task)

    def run_passes(self, tell: Tell) -> None:
        """Run the passes after the timing. Before each, `tell` receives the row so far, in case the process dies."""
        passes = self._passes()
        names = list(passes)
        for number, (name, measure) in enumerate(passes.items()):
            row = self.row()
            tell({"passing": names[number:], "row": row, "transient": may_pass(row)})
            with self._keep_time(name):
                self.columns |= measure()
            self.phases.end(name)

    @contextmanager
    def _keep_time(self, name: str) -> Iterator[None]:
        """Record most errors of the block instead of raising them, so that the measured time is kept."""
        try:
            yield
        except (InvalidError, KeyboardInterrupt):
            raise
        except BaseException as error:
            cause = original(error)  # for the trial's log
            print(f"{name} failed: {type(cause).__name__}: {first_line(cause)}", file=sys.stderr)
            self.failed_passes.append(f"{name}: {self._why_undone(name, error)}")

    def _why_undone(self, name: str, error: BaseException) -> str:
        """Why a pass after the timing was not done, in words: the step itself has run without it."""
        cause = original(error)
        if is_out_of_memory(cause):
            return "not done, since memory ran out"
        if is_mistake(error) or early_end(cause) is not None:  # a message for users
            return first_line(cause)
        if (line := self.task.user_line(cause)) is not None:
            return f"not done, since the user's code fails: {line}: {type(cause).__name__}: {first_line(cause)}"
        return f"not done, since {FAILING.get(name, 'it fails with this step')}"

    def _passes(self) -> dict[str, Callable[[], Columns]]:
        first, has_model = self.job.trial == 1, not self.task.is_function
        longest_s = LONGEST_STEP_S if first else LONGEST_TWICE_S
        has_remedies = self.job.trial <= TRIALS_WITH_REMEDIES and self.columns["step_time_s"] < longest_s
        is_cold = self.job.cell.protocol == COLD  # latencies and remedies time further steps, which are not
        passes: dict[str, tuple[bool, Callable[[], Columns]]] = {
            "latencies": (self.job.latency_steps > 0 and not is_cold, self._latencies),
            "numerical check": (first, self._check),
            "memory pass": (first, self._memory),
            "memory split": (first and has_model and self.job.cell.execution == "eager", self._memory_parts),
            "profile": (first, self._profile),
            "count of operations": (first and has_model, self._count),
            # The last pass, since it changes the weights and keeps memory.
            "remedies": (has_model and has_remedies and not is_cold, self._remedies),
        }
        return {name: measure for name, (is_due, measure) in passes.items() if is_due}

    def row(self) -> Columns:
        reason = self.wrong or why_invalid(self.columns)
        check = "failed" if self.wrong else self.check
        first = self.job.trial == 1
        flags = [*self.flags, *self.task.flags, *host_flags(self.columns)]
        flags += ["not_checked"] if first and self.check == "not_checked" else []
        flags += ["incomplete"] if self.failed_passes else []
        notes = [reason, *self.task.notes] if reason else [*self.task.notes, *self.notes, *self.failed_passes]
        return {
            **self.columns,
            "check": check if first else None,
            "flag_names": flags,
            "status": "invalid" if reason else "ok",
            "reason": "; ".join(notes) or None,
        }

    def _latencies(self) -> Columns:
        methods: dict[str, Method] = correct_methods(self.timed_step, self.watch)
        if self.job.latency_mistakes and not is_cpu(self.job.cell.device):  # on a CPU these mistakes have no effect
            transferring = step_with_transfers(self.task, self.job.cell.execution)
            methods |= mistaken_methods(self.timed_step, transferring, self.watch)
        longest_s = self.job.effort.latencies_max_s
        steps = fitting(self.job.latency_steps, self.columns["step_time_s"], longest_s)
        columns = measure_latencies(methods, steps, self.job.seed + self.job.trial)
        self._check_settings()
        return columns

    def _check(self) -> Columns:
        cell = self.job.cell
        answer = self.task.check() or compare_with_reference(
            self.task, lambda: build_model(cell), cell.precision, cell.execution
        )
        replayed = cell.execution == "cuda-graph" or (cell.execution == "compile" and answer.rows is not None)
        timed = compare_with_eager(self.task, self.execution, cell.precision) if replayed else CheckResult()
        try:
            defined_errors = self.task.own_errors() or {}
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            defined_errors = {}
        self.wrong = timed.wrong or answer.wrong
        unchecked = answer.unchecked or timed.unchecked
        if unchecked is None:
            self.check = "passed"
            self.columns["checked_rows"] = answer.rows or cell.batch_size
        else:
            self.notes.append(unchecked)
            if timed.unchecked is None and cell.model is not None and not cell.model.checked:
                self.check = "waived"
        errors = {
            "relative_error": answer.errors.get("result"),
            "gradient_error": answer.errors.get("gradient"),
            **defined_errors,
        }
        return {name: error if error is None or math.isfinite(error) else None for name, error in errors.items()}

    def _memory(self) -> Columns:
        step = self.execution.step
        self.task.arithmetic.run_until_updated(step)  # the check may leave fresh weights, whose gradients may overflow
        return measure_memory(step, self.cell.target.device, self.cell.target.uuid)

    def _memory_parts(self) -> Columns:
        task = self.task
        subject = Subject(task.step, task.model, task.optimizer, task.on_device)
        return split_memory(subject, self.cell.target.device, self.columns)

    def _profile(self) -> Columns:
        target, step_time_s = self.cell.target, self.columns["step_time_s"]
        transfers = (COPY_IN, COPY_OUT) if self.task.copies else (COPY_IN,)
        profile = profile_device(self.execution.step, target.device, target.synchronise, step_time_s, transfers)
        if profile is None:
            if self.task.is_function and target.device.type in PROFILED:
                self.wrong = f"the function ran nothing on {target.device.type}; it must use its argument `device`"
            return {}
        if self.job.cell.protocol == COLD:  # the profiled steps are not
            return {"kernels_per_step": profile.kernels}
        return {
            "device_busy_s": profile.busy_s,
            "device_work_s": profile.work_s,
            "kernels_per_step": profile.kernels,
            "host_bound_share": max(0.0, 1 - profile.busy_s / step_time_s),
        }

    def _remedies(self) -> Columns:
        def build_graph_task() -> Task:
            return build_task(replace(self.job.cell, execution="cuda-graph"), self.cell.data(), self.cell.arithmetic())

        step_time_s, name = self.columns["step_time_s"], self.job.cell.execution
        return time_remedies(self.task, self.execution, name, step_time_s, build_graph_task, self.watch)

    def _count(self) -> Columns:
        """Count a step's operations; raises InvalidError if the step changes a setting, even temporarily."""
        watch = SwitchWatch(self.cell.switches)
        work = count_work(self.task.step, self.job.cell.execution, self.cell.target, watch)
        if reason := changes(watch.expected, watch.seen):
            raise InvalidError(reason)
        return {**work, **limited_to(self.columns.get("device_work_s"), work)}


SPIN_S, WATCHED_S = 0.3, 0.05
"""Seconds to wait, and then to watch. Threads of numerical libraries may spin for 0.2 s after their work."""


def is_still_computing(cpu_ns: Callable[[], int], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Return True if this process keeps more than half of a core busy although its step has returned."""
    sleep(SPIN_S)
    return busy_cores(WATCHED_S, cpu_ns, sleep) > 0.5


def limited_to(device_work_s: float | None, work: Columns) -> Columns:
    """Scale `products_s` and `others_s` down so that they sum to the device's work; empty if their sum is smaller.

    Where the host falls behind the device, an operator's time includes host time.
    """
    parts = {name: work[name] for name in ("products_s", "others_s") if work.get(name) is not None}
    total_s = sum(parts.values())
    if not device_work_s or total_s <= device_work_s:
        return {}
    return {name: part_s * device_work_s / total_s for name, part_s in parts.items()}


def step_with_transfers(task: Task, execution: str) -> Step | None:
    """The task's step with transfers added; None if it transfers already or cannot."""
    # The replay of a CUDA graph returns no result to transfer.
    if not isinstance(task, InferenceTask) or execution == "cuda-graph" or task.copies:
        return None
    try:
        task.next_host_inputs()
    except NotImplementedError:
        return None
    return task.step_with_transfers


def has_finite_weights(task: Task) -> bool:
    """Return True if all weights of a training are finite; always True for other tasks."""
    weights = parameters_of(task.model) if isinstance(task, TrainingTask) else ()
    return all(bool(torch.isfinite(w).all()) for w in weights if w.is_floating_point() or w.is_complex())

"""One trial: times a cell's step, then looks at it in passes that are never timed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pynvml
import torch

from crossover.config.words import is_cpu
from crossover.errors import InvalidError
from crossover.machine.nvml import session
from crossover.machine.trust import host_flags, may_pass, why_invalid
from crossover.measurement.cell import Columns, OpenCell, open_cell
from crossover.measurement.clock.latency import (
    TURN_STEPS,
    Way,
    fitting,
    measure_latencies,
    mistaken_ways,
    right_ways,
    time_cold,
)
from crossover.measurement.clock.phases import Phases
from crossover.measurement.clock.profiling import profile_device
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, time_steps
from crossover.measurement.host.description import process_age_s
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.memory.memory_pass import measure_memory
from crossover.measurement.memory.memory_split import Subject
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.remedies import LONGEST_STEP_S, LONGEST_TWICE_S, time_remedies
from crossover.measurement.step.conditions import SwitchWatch, changes, read_switches
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.endings import early_end, unless_out_of_memory
from crossover.measurement.step.execution import Execution, prepare
from crossover.measurement.step.flops import count_work
from crossover.measurement.step.tasks import InferenceTask, Task, TrainingTask
from crossover.measurement.workloads import build_model, build_task, count_parameters
from crossover.tables.columns import Measurement

Tell = Callable[[dict[str, Any]], None]


def run_trial(job: TrialJob, tell: Tell = lambda _message: None) -> Measurement:
    """Measure one trial in this process.

    Out of memory, a precision or execution that the device lacks, a step too slow for the time limit and a wrong answer
    are rows with a status and a reason. `tell` takes the messages that `process.child.do` lists. Raises UserError for a
    device or a dataset that is not there.
    """
    with session(pynvml) if job.uuid else nullcontext():  # opening NVML anew for each reading would cost time
        phases = Phases(process_age_s())
        surroundings = Surroundings(job.cell.device, job.uuid, pynvml)
        cell = open_cell(job)
        facts = cell.columns | {
            "parameters": count_parameters(job.cell),
            "effort": json.dumps(asdict(job.effort)),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "load_before": surroundings.counters_before.load,
        }
        phases.end("context")
        tell({"begun": facts})
        trial = Trial(job, cell, facts, surroundings, phases)
        try:
            trial.measure_time()
            trial.run_passes(tell)
            outcome = trial.row()
        except Exception as error:
            if (end := early_end(error)) is None:
                raise
            outcome = {**trial.columns, "status": end[0], "reason": end[1]}  # keeps what was measured before
    return Measurement(**{**facts, **outcome, "spent_s": phases.to_json()})


@dataclass
class Trial:
    """A trial under way: its columns so far, and what is known about their worth."""

    job: TrialJob
    cell: OpenCell
    facts: Columns
    surroundings: Surroundings
    phases: Phases
    task: Task = field(init=False)
    execution: Execution = field(init=False)
    watch: Stopwatch = field(init=False)
    columns: Columns = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    wrong: str | None = None
    """Why another step was timed than the one asked for, or its answer is wrong."""
    checked: bool = False
    """Whether the step's answer was compared."""
    notes: list[str] = field(default_factory=list)
    """Why the answer is unchecked although the check ended."""
    undone: list[str] = field(default_factory=list)
    """The passes that ended early, each with the reason."""

    def measure_time(self) -> None:
        """Build the task, warm up, and time it."""
        job, target = self.job, self.cell.target
        arithmetic = self.cell.arithmetic()
        self.task = task = self.cell.build(self.cell.data(), arithmetic, job.seed + job.trial)
        self.execution = execution = prepare(task, job.cell.execution)
        self.watch = watch = Stopwatch(
            wall_ns=time.perf_counter_ns,
            cpu_ns=time.process_time_ns,
            synchronise=target.synchronise,
            mark=target.mark,
            between_s=target.between_s,
            counts=lambda: {"recompiles": execution.compilations(), **self.surroundings.counts()},
        )
        self.phases.end("build")
        later_steps = min(job.latency_steps, TURN_STEPS)  # as many at least
        if job.latency_mistakes:
            longest_s = job.effort.latencies_max_s
            ran_s = time_cold(execution.step, job.latency_steps, watch, longest_s, job.time_limit_s, later_steps)
            self.columns["latencies_cold_s"] = list(ran_s)
        else:
            ran_s = first_updates(task, execution.step, watch)
        self.phases.end("first steps")
        limits = (job.time_limit_s, ran_s, later_steps)
        timed, self.flags = time_steps(execution.step, task.cycle_steps, job.effort, watch, *limits)
        if not is_cpu(job.cell.device):  # keeps the device at work until its clock is read
            for _ in range(timed["block_steps"]):
                execution.step()
        self.surroundings.read_under_load()
        target.synchronise()
        self.columns |= timed | {"compile_s": execution.compile_s()}
        cores = (self.facts["threads"], self.facts["physical_cores"])
        self.columns |= self.surroundings.columns(timed["timed_s"], timed["timed_steps"], *cores)
        self.phases.end("warm-up and timing")
        self._read_back()  # the steps may have moved the model, or have set something
        if not unless_out_of_memory(lambda: has_finite_weights(task), True):
            self.flags.append("diverged")
        if job.cell.execution == "compile" and execution.compilations() == 0:
            self.wrong = (
                "torch.compile compiled nothing, so that the eager step was measured: something switches it off"
            )

    def _read_back(self) -> None:
        """Note the switches as they are; raises InvalidError if they or the device are not as they were asked for."""
        self.columns["backend_settings"] = json.dumps(read_switches())
        self.cell.check(self.task)

    def run_passes(self, tell: Tell) -> None:
        """Run the passes after the timing and add their columns; a pass that memory ends is left out.

        Before each, tell the row to keep in case the pass does not end.
        """
        passes = self._passes()
        pending = list(passes)
        for name, measure in passes.items():
            row = self.row()
            tell({"passing": pending, "row": row, "transient": may_pass(row)})
            try:
                self.columns |= measure()
            except Exception as error:
                end = early_end(error)
                if end is None or end[0] == "invalid":
                    raise
                self.undone.append(f"{name}: {end[1]}")
            self.phases.end(name)
            pending = pending[1:]

    def _passes(self) -> dict[str, Callable[[], Columns]]:
        """The passes of this trial: the first has all, later ones what gives a time, unless their steps are long."""
        passes: dict[str, Callable[[], Columns]] = {}
        if self.job.latency_steps:
            passes["latencies"] = self._latencies
        if self.job.trial == 1:
            passes |= {"numerical check": self._check, "memory pass": self._memory}
            passes |= {"profile": self._profile, "count of operations": self._count}
        if self.columns["step_time_s"] < (LONGEST_STEP_S if self.job.trial == 1 else LONGEST_TWICE_S):
            passes["remedies"] = self._split  # last, since it leaves other weights and holds memory
        return passes

    def row(self) -> Columns:
        """The columns so far with flags, status and reason."""
        reason = self.wrong or why_invalid(self.columns)
        answer = "wrong" if self.wrong else "right" if self.checked else "unchecked"
        first = self.job.trial == 1
        more = {"unchecked": first and not self.checked, "incomplete": bool(self.undone)}
        return {
            **self.columns,
            "answer": answer if first else None,
            "flags": [*self.flags, *host_flags({**self.facts, **self.columns}), *(flag for flag in more if more[flag])],
            "status": "invalid" if reason else "ok",
            "reason": reason or "; ".join([*self.notes, *self.undone]) or None,
        }

    def _latencies(self) -> Columns:
        ways: dict[str, Way] = right_ways(self.execution.step, self.watch)
        if self.job.latency_mistakes and not is_cpu(self.job.cell.device):  # nothing to wait for, nothing to move
            transferring = step_with_transfers(self.task, self.job.cell.execution)
            ways |= mistaken_ways(self.execution.step, transferring, self.watch)
        longest_s = self.job.effort.latencies_max_s
        steps = fitting(self.job.latency_steps, self.columns["step_time_s"], longest_s)
        found = measure_latencies(ways, steps, self.job.seed + self.job.trial)
        self._read_back()
        return found

    def _check(self) -> Columns:
        """The numerical check, and the workload's own, which is left out if it does not fit into memory."""
        cell = self.job.cell
        answer = compare_with_reference(self.task, lambda: build_model(cell), cell.precision, cell.execution)
        own = unless_out_of_memory(self.task.own_errors, None) or {}
        self.wrong = self.wrong or answer.wrong
        self.checked = answer.unchecked is None or (cell.model is not None and not cell.model.checked)
        self.notes += [answer.unchecked] if answer.unchecked else []
        found = {"relative_error": answer.errors.get("result"), "gradient_error": answer.errors.get("gradient"), **own}
        return {name: error if error is None or math.isfinite(error) else None for name, error in found.items()}

    def _memory(self) -> Columns:
        task, step = self.task, self.execution.step
        task.arithmetic.run_until_updated(step)  # the check has left fresh weights, whose gradients may overflow
        subject = Subject(
            step=step,
            model=task.model,
            optimizers=() if task.optimizer is None else (task.optimizer,),
            resident=task.resident,
            eager_step=task.step if self.job.cell.execution == "eager" else None,
        )
        return measure_memory(subject, self.cell.target.device, self.cell.target.uuid)

    def _profile(self) -> Columns:
        """Device time with a kernel running, and the share of a step without."""
        target, step_time_s = self.cell.target, self.columns["step_time_s"]
        profile = profile_device(self.execution.step, target.device, target.synchronise, step_time_s)
        if profile is None:
            return {}
        return {
            "device_busy_s": profile.busy_s,
            "device_work_s": profile.work_s,
            "kernels_per_step": profile.kernels,
            "host_bound_share": max(0.0, 1 - profile.busy_s / step_time_s),
        }

    def _split(self) -> Columns:
        """The step with each remedy, timed in turns."""
        step_time_s, name = self.columns["step_time_s"], self.job.cell.execution
        return time_remedies(self.task, self.execution, name, step_time_s, self._build_anew, self.watch)

    def _build_anew(self) -> Task:
        """The task once more, as a CUDA graph takes it."""
        return build_task(replace(self.job.cell, execution="cuda-graph"), self.cell.data(), self.cell.arithmetic())

    def _count(self) -> Columns:
        """Operations of a step; the watch also sees a switch that a step sets and sets back."""
        with SwitchWatch(self.cell.switches) as seen:
            work = count_work(self.task.step, self.job.cell.execution, self.cell.target)
        if reason := changes(seen.asked, seen.found):
            raise InvalidError(reason)
        return work


def first_updates(task: Task, step: Step, watch: Stopwatch) -> tuple[float, ...]:
    """Seconds of the first steps, up to one that a loss scaler lets update the weights; none without a scaler.

    Otherwise a slow step, which runs only a few times, would be timed without its optimizer.
    """
    ran_s: list[float] = []
    task.arithmetic.run_until_updated(lambda: ran_s.append(time_block(step, 1, watch).wall_s))
    return tuple(ran_s)


def step_with_transfers(task: Task, execution: str) -> Step | None:
    """The step with transfers; None for a training, a workload that offers no batch in host memory, and a CUDA graph.

    A graph leaves its result in its own memory, so a replay has no result to transfer.
    """
    if not isinstance(task, InferenceTask) or execution == "cuda-graph":
        return None
    try:
        task.next_host_inputs()
    except NotImplementedError:
        return None
    return task.step_with_transfers


def has_finite_weights(task: Task) -> bool:
    return not isinstance(task, TrainingTask) or all(bool(torch.isfinite(p).all()) for p in task.model.parameters())

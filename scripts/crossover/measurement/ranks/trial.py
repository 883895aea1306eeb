"""Trials, on one device or on several: on several, all ranks run each timed block, and the slowest rank's time counts.

Several devices share a batch, or take one each (protocol `each`). In the second case, they finish several batches at
once, and times, operations and energy are for one batch, so that they compare with those of one device.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pynvml

from crossover.config.words import EACH, is_cpu, unit_of_side
from crossover.errors import UnsupportedError
from crossover.machine.nvml import session
from crossover.measurement import Tell, ignore
from crossover.measurement.cell import Columns, open_cell
from crossover.measurement.clock.timing import Stopwatch, time_block
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.modules import parameters_of
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.ranks.group import Group, fork_ranks
from crossover.measurement.ranks.parallel import build_part, check_gradients, join
from crossover.measurement.remedies import Method, time_interleaved
from crossover.measurement.step.endings import original
from crossover.measurement.step.execution import Execution
from crossover.measurement.step.tasks import Task, TrainingTask
from crossover.measurement.trial import TRIALS_WITH_REMEDIES, Trial, run_trial
from crossover.tables.columns import Measurement

UNUSED = "Expected to have finished reduction"
"""In DistributedDataParallel's error for a parameter without a gradient."""
WITH_UNUSED = (
    "cannot train this model: the loss does not depend on all of its parameters, which DistributedDataParallel "
    "refuses; leave the others out or freeze them (requires_grad=False)"
)

PASSES = ("numerical check", "memory pass", "memory split", "count of operations")
"""The passes of a trial on one device that make sense on several."""

DISTURBANCES = ("foreign_processes", "foreign_gpu_share", "slowdown_s", "power_capped_s")
"""Columns on what may slow a GPU down, of which the largest value of all ranks counts: they wait for the slowest."""

COMPARED_BLOCK_S = 0.02
"""Minimum duration of a block with or without communication."""

OF_A_BATCH = (
    *("step_time_s", "step_time_mean_s", "step_time_iqr_s", "samples_s"),
    *("device_time_s", "device_samples_s", "rank_times_s"),
)


def run(job: TrialJob, tell: Tell = ignore) -> Measurement:
    """Measure one trial in this process and, on several devices, in forks of it; as `run_trial`."""
    group, own_job = fork_ranks(job, work, tell)
    if group is None:
        return run_trial(job, tell)
    row = None
    try:
        row = run_trial(own_job, tell, partial(TrialOnRanks, group))
    finally:
        group.end(gracefully=row is not None and row.status == "ok")
    return row


def work(group: Group, job: TrialJob) -> None:
    """What the other ranks do."""
    with session(pynvml) if job.uuid else nullcontext():
        surroundings = Surroundings(unit_of_side(job.cell.device), job.uuid, pynvml)
        cell = open_cell(job)
        task = build_part(cell, group, ignore)
        join(group, cell, task, surroundings)
        group.obey(Stopwatch(synchronise=cell.target.synchronise, around=task.around))


class TrialOnRanks(Trial):
    """The first rank's trial, which orders the others to do the same."""

    def __init__(self, group: Group, *arguments: Any, **fields: Any) -> None:
        super().__init__(*arguments, **fields)
        self.group = group
        self.job = replace(self.job, latency_steps=0, latency_mistakes=False)

    def measure_time(self, tell: Tell) -> None:
        self._reporting(super().measure_time, tell)

    def _reporting(self, measure: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `measure`; an error that another rank's end has caused is left to the report of that end."""
        try:
            return measure(*arguments)
        except Exception as error:
            if UNUSED in str(original(error)):
                raise UnsupportedError(f"{self.job.cell.device} {WITH_UNUSED}") from error
            self.group.await_report(original(error))
            raise

    def _build(self, tell: Tell) -> Task:
        return build_part(self.cell, self.group, tell)

    def _prepare(self) -> Execution:
        assert isinstance(self.task, TrainingTask)
        step = join(self.group, self.cell, self.task, self.surroundings)
        return Execution(step, self.task.run, around=self.task.around)

    def _stopwatch(self) -> Stopwatch:
        watch, group = super()._stopwatch(), self.group
        counts = watch.counts
        group.functions["counts"] = dict  # `watch` counts those of this rank
        return group.watch(replace(watch, counts=lambda: (group.call("counts"), counts())[1]))

    def _read_surroundings(self) -> None:
        """Read the state of all GPUs: the row has the energy of all, and the worst of what may disturb one of them."""
        columns, size = self.columns, self.group.size
        blocks = zip(*self.group.samples_s[-len(columns["samples_s"]) :], strict=True)
        columns["rank_times_s"] = [statistics.median(walls_s) / columns["block_steps"] for walls_s in blocks]
        if self.job.cell.protocol == EACH:
            of_a_batch = {name: columns[name] for name in OF_A_BATCH if columns[name] is not None}
            columns |= {name: (np.asarray(seconds) / size).tolist() for name, seconds in of_a_batch.items()}
            columns["timed_steps"] *= size
        if not is_cpu(self.job.cell.device):
            time_block(self.execution.step, columns["block_steps"], self.watch)
        of_ranks = self.group.call("surroundings", columns["timed_s"], columns["timed_steps"])
        columns |= of_ranks[0]
        for name in DISTURBANCES:
            columns[name] = max((row[name] for row in of_ranks if row[name] is not None), default=None)
        reasons = [row["throttle_reasons"] for row in of_ranks if row["throttle_reasons"] is not None]
        columns["throttle_reasons"] = sorted({*chain(*reasons)}) if reasons else None
        if columns["leased_beside"] is not None:
            columns["leased_beside"] -= size - 1
        if not is_cpu(self.job.cell.device):
            for name in ("energy_j", "energy_per_step_j"):
                values = [of_rank[name] for of_rank in of_ranks]
                columns[name] = None if None in values else sum(values)

    def _passes(self) -> dict[str, Callable[[], Columns]]:
        every = super()._passes()
        passes = {name: every[name] for name in PASSES if name in every}
        if self.job.trial <= TRIALS_WITH_REMEDIES:
            passes["communication"] = self._communication
        return {name: partial(self._reporting, measure) for name, measure in passes.items()}

    def _check(self) -> Columns:
        assert isinstance(self.task, TrainingTask)
        error, wrong, note = check_gradients(self.group, self.task, self.job.cell.precision)
        self.notes += [note] if note else []
        columns = super()._check()
        self.wrong = wrong or self.wrong
        return columns | {"averaged_error": error}

    def _memory(self) -> Columns:
        """The memory of the rank that needs most."""
        return max(
            self.group.call("memory"),
            key=lambda columns: columns.get("peak_allocated_bytes") or columns.get("peak_rss_bytes") or 0,
        )

    def _count(self) -> Columns:
        columns = super()._count()
        if self.job.cell.protocol != EACH and columns["flops_per_step"]:
            rows = self.group.call("rows")
            columns["flops_per_step"] = columns["flops_per_step"] * sum(rows) // rows[0]
        return columns

    def _communication(self) -> Columns:
        """The times of a step with its communication, and with the all-reduce of gradients switched off."""
        methods = dict(zip(("split_step_s", "unsynced_s"), map(Method, self.group.steps), strict=True))
        batches = self.group.size if self.job.cell.protocol == EACH else 1
        times_s = time_interleaved(methods, COMPARED_BLOCK_S, self.watch)
        averaged_bytes = sum(weight.nbytes for weight in parameters_of(self.task.model) if weight.requires_grad)
        return {"averaged_bytes": averaged_bytes} | {name: time_s / batches for name, time_s in times_s.items()}

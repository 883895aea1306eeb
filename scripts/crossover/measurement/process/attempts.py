"""Run a job in a measuring process, find out why its step fails, and repeat a trial whose fault may be temporary."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

from crossover.files import atomic_path
from crossover.measurement.process.children import ForkedProcess, FreshProcess, NoServerError, OutdatedServerError
from crossover.measurement.process.jobs import REFUSED, Job, Outcome, RowJob, TrialJob, TryJob, plain_cell
from crossover.measurement.process.supervision import ChildFailedError, ChildLostError, supervise

TRY_MIN_S = 10.0
"""Minimum time limit of the try on the CPU, for a step that fails late."""


def measure(job: RowJob) -> Outcome:
    """Run a trial or a training and write its row atomically; raises ChildFailedError as `run_supervised` does."""
    with atomic_path(Path(job.output)) as temporary:
        job = replace(job, output=str(temporary.absolute()))  # the user's code may change the working directory
        outcome = run_supervised(job)
        if outcome.transient and isinstance(job, TrialJob):
            print(f"invalid: {outcome.reason}; measuring once more", file=sys.stderr)
            outcome = run_supervised(replace(job, attempts=2))
        if not outcome.written:
            from crossover.tables import columns

            record = getattr(columns, job.record)
            columns.write_record(record(**outcome.facts, status=outcome.status, reason=outcome.reason), temporary)
    return outcome


def run_supervised(job: Job, clock: Callable[[], float] = time.monotonic) -> Outcome:
    """Run a job in a measuring process; if its step fails, try the step on the CPU in fp32.

    The job is `unsupported` if the step runs on the CPU, or if the try does not finish and the error is typical of a
    device without support. Raises ChildFailedError as `supervise` does, or if the step fails on the CPU too.
    """
    start_s = clock()
    outcome = _run(job)
    if outcome.status != REFUSED:
        return outcome
    left_s = max(TRY_MIN_S, job.time_limit_s - (clock() - start_s))
    shared = {field.name: getattr(job, field.name) for field in fields(Job)}
    changes = {"cell": plain_cell(job.cell), "time_limit_s": left_s, "uuid": None}
    tried = _run(TryJob(**shared | changes, steps=1))
    mistake = outcome.result["mistake"]
    if tried.status == "invalid":
        raise ChildFailedError(mistake)
    if tried.status in ("ok", "unsupported") or outcome.result["is_lacking"]:
        return replace(outcome, status="unsupported", result={})
    reason = f"{mistake}; it is not known whether the step runs on the CPU in fp32 ({tried.status})"
    return replace(outcome, status="invalid", reason=reason, result={})


def _run(job: Job) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="xo-", ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "TMPDIR": folder}
        if job.isolation == "server":
            try:
                return supervise(ForkedProcess(job, environment), job.time_limit_s)
            except OutdatedServerError:
                pass
            except (NoServerError, ChildLostError) as reason:
                print(f"no trial server: {reason}; starting a fresh process", file=sys.stderr)
        return supervise(FreshProcess(replace(job, isolation="process"), environment), job.time_limit_s)

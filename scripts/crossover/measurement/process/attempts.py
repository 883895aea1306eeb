"""A job from its request to its result: which process does it, what its end means, and a second attempt."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

from crossover.files import atomic_path
from crossover.measurement.process.assertions import first_assertion_only
from crossover.measurement.process.children import ForkedProcess, FreshProcess, NoServerError, OutdatedServerError
from crossover.measurement.process.jobs import REFUSED, Job, Outcome, RowJob, TrialJob, TryJob, plain_cell
from crossover.measurement.process.supervision import ChildFailedError, ChildLostError, kernel_oom_kills, supervise
from crossover.tables.columns import write_record


def measure(job: RowJob) -> Outcome:
    """Do a trial or a training and write its row, atomically.

    A trial is measured once more if what spoilt it may be gone by then. Raises ChildFailedError if the measuring
    process ended by an error, which it has printed.
    """
    with atomic_path(Path(job.output)) as temporary:
        job = replace(job, output=str(temporary))
        outcome = run_supervised(job)
        if outcome.transient and isinstance(job, TrialJob):
            print(f"invalid: {outcome.reason}; measuring once more", file=sys.stderr)
            outcome = run_supervised(replace(job, attempts=2))
        if not outcome.written:
            write_record(job.record(**outcome.facts, status=outcome.status, reason=outcome.reason), temporary)
    return outcome


def run_supervised(job: Job, clock: Callable[[], float] = time.monotonic) -> Outcome:
    """Have a measuring process do a job, and find out what a failed step means.

    What fails although the same step runs on the CPU in fp32 is unsupported. Where that cannot be found out in time, it
    is unsupported by the words of a device, else invalid. Raises ChildFailedError if the measuring process ended by an
    error, which it has printed, or if the step fails on the CPU too, which then is printed.
    """
    start_s = clock()
    outcome = _run(job)
    if outcome.status != REFUSED:
        return outcome
    left_s = max(TRY_MIN_S, job.time_limit_s - (clock() - start_s))
    shared = {field.name: getattr(job, field.name) for field in fields(Job)}
    changes = {"cell": plain_cell(job.cell), "time_limit_s": left_s, "uuid": None}
    tried = _run(TryJob(**shared | changes, steps=1))
    mistake = outcome.found["mistake"]
    if tried.status in ("ok", "unsupported"):
        return replace(outcome, status="unsupported", found={})
    if tried.status == "invalid":
        raise ChildFailedError(mistake)
    if outcome.found["is_lacking"]:
        return replace(outcome, status="unsupported", found={})
    unknown = f"{mistake}; whether it runs on the CPU in fp32 could not be found out ({tried.status})"
    return replace(outcome, status="invalid", reason=unknown, found={})


TRY_MIN_S = 10.0
"""Least time for the try on the CPU, however late the step failed."""


def _run(job: Job) -> Outcome:
    """Have a measuring process do a job, forked by the trial server if the job asks for that and there is one.

    Its folder for temporary files is removed however it ends. Raises ChildFailedError if the measuring process ended by
    an error, which it has printed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="xo-", ignore_cleanup_errors=True) as folder,
        first_assertion_only(job.cell.device) as error,
    ):
        own = {**os.environ, "TMPDIR": folder}
        if job.isolation == "server":
            try:
                return supervise(ForkedProcess(job, own, error), job.time_limit_s, kernel_oom_kills)
            except OutdatedServerError:
                pass
            except (NoServerError, ChildLostError) as reason:
                print(f"no trial server: {reason}; starting a fresh process", file=sys.stderr)
        fresh = FreshProcess(replace(job, isolation="process"), own, error)
        return supervise(fresh, job.time_limit_s, kernel_oom_kills)

"""A job from its request to its result: which process does it, what its end means, and a second attempt."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from crossover.files import atomic_path
from crossover.measurement.process.assertions import first_assertion_only
from crossover.measurement.process.children import ForkedProcess, FreshProcess, NoServerError, OutdatedServerError
from crossover.measurement.process.jobs import Job, Outcome, RowJob, TrialJob
from crossover.measurement.process.supervision import ChildLostError, kernel_oom_kills, supervise
from crossover.tables.rows import write_record


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


def run_supervised(job: Job) -> Outcome:
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

"""A job from its request to its result: which process does it, what its end means, and a second attempt."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from crossover.files import atomic_path
from crossover.measurement.process.children import ForkedProcess, FreshProcess, NoServerError
from crossover.measurement.process.jobs import Job, Outcome, RowJob, TrialJob
from crossover.measurement.process.supervision import ChildLostError, kernel_oom_kills, supervise
from crossover.tables.rows import write_record
from crossover.text import bytes_text, percent_text, seconds_text


def measure(job: RowJob) -> str:
    """Do a trial or a training and write its row, atomically; returns in one line what it found.

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
    return answer_of(outcome)


def answer_of(outcome: Outcome) -> str:
    """What a job found, in one line: "1.24 ms a step, within ±2 % in this trial, peak 1.2 GB, on NVIDIA H200"."""
    found = outcome.found
    if not found:
        return outcome.status if outcome.reason is None else f"{outcome.status}: {outcome.reason}"
    words = [f"{seconds_text(found['step_time_s'])} a step"]
    if found["half_width"] is not None:
        words.append(f"within ±{percent_text(found['half_width'])} in this trial")
    words += [f"peak {bytes_text(found['peak_bytes'])}"] if found["peak_bytes"] else []
    doubts = f" (flagged: {', '.join(found['flags'])})" if found["flags"] else ""
    return ", ".join([*words, f"on {found['on']}"]) + doubts


def run_supervised(job: Job) -> Outcome:
    """Have a measuring process do a job, forked by the trial server if the job asks for that and there is one.

    Its folder for temporary files is removed however it ends. Raises ChildFailedError if the measuring process ended by
    an error, which it has printed.
    """
    with tempfile.TemporaryDirectory(prefix="xo-", ignore_cleanup_errors=True) as folder:
        own = {**os.environ, "TMPDIR": folder}
        if job.isolation == "server":
            try:
                return supervise(ForkedProcess(job, own), job.time_limit_s, kernel_oom_kills)
            except (NoServerError, ChildLostError) as reason:
                print(f"no trial server: {reason}; starting a fresh process", file=sys.stderr)
        fresh = FreshProcess(replace(job, isolation="process"), own)
        return supervise(fresh, job.time_limit_s, kernel_oom_kills)

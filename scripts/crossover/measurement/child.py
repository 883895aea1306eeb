"""The measuring process: does one job, tells its parent, and never outlives it."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from crossover.errors import one_line_errors
from crossover.measurement.messages import send
from crossover.measurement.requests import BatchTry, Job, Request, TrainingRun, job_from_json
from crossover.records import Measurement
from crossover.row_files import write_record
from crossover.studies import NULL

KILLED_FIRST = 1000
"""Score for the kernel's out-of-memory killer: this process, not its parent or the trial server."""


def end_with_parent(lifeline: int) -> None:
    """Let the kernel end this process once the parent's end of the pipe closes, however busy it is.

    The parent never writes: the pipe becomes readable only when the parent is gone, and then SIGIO comes, whose default
    is to end the process. No thread is needed, and nothing runs while measuring.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        gone = os.read(lifeline, 1) == b""  # it may have gone before
    except BlockingIOError:
        return
    if gone:
        os._exit(1)


def prefer_as_victim() -> None:
    """Where memory runs out, this process is the one to end."""
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError):
        score.write_text(str(KILLED_FIRST))


def run_child(job: Job, lifeline: int, messages: int) -> None:
    """Do a job and say how it ended; raises UserError for what a user can mend."""
    end_with_parent(lifeline)
    prefer_as_victim()
    from crossover.measurement.threads import confine, export_threads

    confine(job.cpus)  # before anything starts a thread, which would keep the CPUs of its parent
    export_threads(job.threads)
    if isinstance(job, BatchTry):
        _try_batch(job, messages)
    elif isinstance(job, TrainingRun):
        _train(job, messages)
    else:
        _measure_trial(job, messages)


def run_request(request: Request, *tell: Callable[[dict[str, Any]], None]) -> Measurement:
    """Measure a trial, `tell` as in `run_trial`; torch is imported only where there is work."""
    if request.cell.workload == NULL:
        from crossover.measurement.null_trial import run_null_trial

        return run_null_trial(request, *tell[:1])
    from crossover.measurement.trial import run_trial

    return run_trial(request, *tell)


def _measure_trial(request: Request, messages: int) -> None:
    """Measure a trial and write its row."""
    from crossover.measurement.trust import may_pass

    row = run_request(request, lambda facts: send(messages, {"begun": facts}), partial(send, messages))
    write_record(row, Path(request.output))
    send(messages, {"done": row.status, "reason": row.reason, "transient": may_pass(vars(row))})


def _try_batch(job: BatchTry, messages: int) -> None:
    """Find out whether a batch fits, and how fast it is where that is wanted."""
    from crossover.measurement.batch_try import run_try

    status, reason, found = run_try(job, lambda facts: send(messages, {"begun": facts}))
    send(messages, {"done": status, "reason": reason, "found": found})


def _train(job: TrainingRun, messages: int) -> None:
    """Train a model and write its row."""
    from crossover.measurement.training import run_training

    row = run_training(job, lambda facts: send(messages, {"begun": facts}))
    write_record(row, Path(job.output))
    send(messages, {"done": row.status, "reason": row.reason})


def main() -> None:
    """Entry of a fresh process: job, lifeline and messages are its arguments."""
    text, lifeline, messages = sys.argv[1:]
    with one_line_errors():
        run_child(job_from_json(text), int(lifeline), int(messages))

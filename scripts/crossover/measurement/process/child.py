"""The measuring process: does one job, tells its parent, and never outlives it."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from crossover.errors import one_line_errors
from crossover.machine.code_key import code_of, work_of
from crossover.measurement.process.messages import send
from crossover.measurement.process.requests import BatchTry, Job, Request, job_from_json
from crossover.tables.row_files import write_record

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
    from crossover.machine.threads import confine, export_threads

    confine(job.cpus)  # before anything starts a thread, which would keep the CPUs of its parent
    export_threads(job.threads)

    def begin(facts: dict[str, Any]) -> None:
        send(messages, {"begun": facts})

    done = do(job, begin, partial(send, messages)) if isinstance(job, Request) else do(job, begin)
    if isinstance(job, BatchTry):
        status, reason, found = done
        send(messages, {"done": status, "reason": reason, "found": found})
    else:
        write_record(done, Path(job.output))
        from crossover.machine.trust import may_pass

        send(messages, {"done": done.status, "reason": done.reason, "transient": may_pass(vars(done))})


def do(job: Job, *tell: Callable[[dict[str, Any]], None]) -> Any:
    """Do a job with the code as it is at this moment, and return what its function does: a record, or a try's outcome.

    `tell` takes the facts known at the beginning, and of a trial the row as it would be if a pass did not end. What
    the job imports is imported here, so that a fork of the trial server has nothing of an older version, nor of what
    another workload imports.
    """
    code = code_of(job.kind, job.cell.workload)
    module, function = work_of(job.kind, job.cell.workload)
    work = getattr(importlib.import_module(module), function)
    return work(replace(job, code_key=code.key, packages=json.dumps(code.packages)), *tell)


def main() -> None:
    """Entry of a fresh process: job, lifeline and messages are its arguments."""
    text, lifeline, messages = sys.argv[1:]
    with one_line_errors():
        run_child(job_from_json(text), int(lifeline), int(messages))

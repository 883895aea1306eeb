"""The measuring process: does one job, tells its parent, and never outlives it."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import json
import mmap
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from crossover.errors import ASSERTED, ASSERTION, RefusedError, UserError, one_line_errors
from crossover.machine.code_key import code_of, work_of
from crossover.measurement.process.jobs import REFUSED, Job, RowJob, TrialJob, job_from_json
from crossover.measurement.process.messages import send
from crossover.measurement.torch_words import keep_torch_quiet
from crossover.tables.columns import write_record

KILLED_FIRST = 1000
"""Score for the kernel's out-of-memory killer: it ends this process, not its parent or the trial server."""


MADV_POPULATE_WRITE = 23
"""Advice of Linux 5.14 and later to copy pages at once, in half the time that it takes to write to each."""


def end_with_parent(lifeline: int) -> None:
    """Let the kernel end this process once the parent's end of the pipe closes, however busy it is.

    The parent never writes: the pipe becomes readable only when the parent is gone, and then SIGIO comes, which by
    default ends the process. No thread is needed, and nothing runs while measuring.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        gone = os.read(lifeline, 1) == b""  # it may have gone before
    except BlockingIOError:
        return
    if gone:
        os._exit(1)


def copy_heap() -> None:
    """Write to each page of the C heap, so that the kernel copies what a fork still shares with the trial server.

    Otherwise it would copy a page at the first write, within the steps that are timed: pybind11 links each of its
    objects into a table that is spread over the heap. A copy interrupts every thread of the process, which made steps
    of 0.2 ms on two threads 1.09 times as long. To be called while there is but one thread.
    """
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith("[heap]"):
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_POPULATE_WRITE) != 0:
                for page in range(start, end, mmap.PAGESIZE):
                    ctypes.memmove(page, page, 1)


def run_child(job: Job, lifeline: int, messages: int) -> None:
    """Do a job and tell the parent how it ended; raises UserError for what a user can mend.

    A job whose step fails, except on the CPU in fp32, ends as REFUSED, and the parent finds out why.
    """
    end_with_parent(lifeline)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(KILLED_FIRST))
    keep_torch_quiet()
    try:
        _do_and_tell(job, messages)
    except BaseException as error:
        send(messages, {"failed": True})  # the error itself is printed
        if (mistake := _mistake_of(error, job)) is not None:
            raise mistake from error
        raise


def _do_and_tell(job: Job, messages: int) -> None:
    from crossover.machine.threads import confine, export_threads

    if isinstance(job, RowJob):  # the user's code may change the working folder
        job = replace(job, output=str(Path(job.output).absolute()))
    confine(job.cpus)  # before anything starts a thread, which would keep the CPUs of its parent
    if job.isolation == "server":
        copy_heap()
    export_threads(job.threads)
    try:
        result = do(job, partial(send, messages))
    except RefusedError as refused:
        found = {"mistake": refused.mistake, "is_lacking": refused.is_lacking}
        send(messages, {"done": REFUSED, "reason": str(refused), "found": found})
        return
    if isinstance(job, RowJob):
        from crossover.machine.trust import may_pass

        write_record(result, Path(job.output))
        found = _found(vars(result)) if isinstance(job, TrialJob) and result.status == "ok" else {}
        transient = may_pass(vars(result))
        send(messages, {"done": result.status, "reason": result.reason, "found": found, "transient": transient})
    else:
        status, reason, found = result
        send(messages, {"done": status, "reason": reason, "found": found})


def _mistake_of(error: BaseException, job: Job) -> UserError | None:
    """What the user can do about an error that no job expects; None if that is not known."""
    model = job.cell.model
    shown = model.shown if model else job.cell.workload
    if isinstance(error, SystemExit):
        return UserError(f"{shown}: its step ends the program (SystemExit: {error}); take that out")
    return UserError(f"{shown}: {ASSERTION}") if ASSERTED in str(error) else None


def _found(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a trial found, for the line that its command prints."""
    peak_bytes = row["peak_allocated_bytes"] or row["peak_rss_bytes"]
    own = {name: row[name] for name in ("step_time_s", "samples_s", "flags")}
    return {**own, "peak_bytes": peak_bytes, "on": row["device_name"] or row["device"]}


def do(job: Job, tell: Callable[[dict[str, Any]], None] = lambda _message: None) -> Any:
    """Do a job with the code as it is at this moment; returns the result of its function, a row or a try's outcome.

    `tell` takes the job's messages: `begun`, with the facts known at the beginning; `known`, with further ones;
    `doing`, with the user's code that is about to run, or None, and the `remedy` if it takes too long; and before each
    later pass of a trial `passing`, with the row to keep if the pass does not end. The job's imports happen here, so
    that a fork of the trial server has nothing from an older version, nor from another workload.
    """
    code = code_of(job.kind, job.cell.workload, model=job.cell.model)
    module, function = work_of(job.kind, job.cell.workload)
    work = getattr(importlib.import_module(module), function)
    job = replace(
        job,
        code_key=code.key,
        model_key=code.model_key,
        measurement_key=code.measurement_key,
        packages=json.dumps(code.packages),
    )
    return work(job, tell)


def main() -> None:
    """Entry of a fresh process: job, lifeline and messages are its arguments."""
    text, lifeline, messages = sys.argv[1:]
    with one_line_errors():
        run_child(job_from_json(text), int(lifeline), int(messages))

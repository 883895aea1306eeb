"""The measuring process: run a job, send messages to the parent, and end when the parent does."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import json
import mmap
import os
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from crossover.errors import ASSERTED, ASSERTION, RefusedError, UserError, one_line_errors
from crossover.machine.code_key import Modules, code_of
from crossover.machine.entry_points import WORK
from crossover.machine.threads import confine, export_threads
from crossover.machine.trust import may_pass
from crossover.machine.written_files import WrittenFiles
from crossover.measurement import Tell, ignore
from crossover.measurement.process.jobs import REFUSED, Job, RowJob, TrialJob, job_from_json
from crossover.measurement.process.messages import send
from crossover.measurement.process.writes import noted_writes, noting_builds
from crossover.tables.columns import write_record

KILLED_FIRST = 1000
"""Score for the kernel's out-of-memory killer, so that it kills this process before its parent or the server."""

MADV_POPULATE_WRITE = 23
"""Advice to madvise (Linux 5.14 and later) that copies shared pages, twice as fast as a write to each page."""

INTERNAL = (
    "Warning: Profiler clears events",
    "Sparse .* tensor support is in beta state",
    "The PyTorch API of (nested|MaskedTensors?)",
    "Lazy modules are a new feature",
    "dynamo_pgo force disabled",  # `step.execution` sets this
    "TensorFloat32 tensor cores .* available but not enabled",  # the config sets this precision
    "Attempting to run cuBLAS, but there was no current CUDA context",
    "The CUDA Graph is empty",
)
"""Patterns of torch's warnings that users cannot act on."""


def end_with_parent(lifeline: int) -> None:
    """Let the kernel end this process once the parent's end of the pipe closes.

    The parent never writes, so the pipe becomes readable only when that end closes. The kernel then sends SIGIO,
    which by default ends the process. This needs no thread, which would disturb the measurement.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        gone = os.read(lifeline, 1) == b""  # the parent may be gone already
    except BlockingIOError:
        return
    if gone:
        os._exit(1)


def copy_heap() -> None:
    """Write to each page of the C heap, so that the kernel copies the pages that a fork shares with the trial server.

    Otherwise the kernel would copy a page at the first write to it, perhaps within a timed step, since pybind11 links
    its objects into a table that is spread over the heap. A copy interrupts every thread of the process; copies made
    steps of 0.2 ms on two threads 1.09x slower. Call this while there is only one thread.
    """
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith("[heap]"):
            start, end = (int(address, 16) for address in line.split()[0].split("-"))
            if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_POPULATE_WRITE) != 0:
                for page in range(start, end, mmap.PAGESIZE):
                    ctypes.memmove(page, page, 1)


def resize_thread_pools(threads: int) -> None:
    """Give the loaded libraries the number of threads that a fresh process would read from its environment.

    With 2, 8 and 16 of 16 cores, products, sums, convolutions and training steps of torch and products of NumPy took as
    long as in forks of a server with that number from the start, within the spread of forks, on as many threads.
    """
    import pyarrow
    import threadpoolctl

    threadpoolctl.threadpool_limits(threads)  # OpenMP, OpenBLAS and MKL
    pyarrow.set_cpu_count(threads)


def run_child(job: Job, lifeline: int, messages: int) -> None:
    """Run a job and send the parent its last message; raises UserError for the user's mistakes."""
    end_with_parent(lifeline)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(KILLED_FIRST))
    keep_torch_quiet()
    try:
        confine(job.cpus)  # before any thread starts, since a thread inherits its parent's CPUs
        if job.isolation == "server":
            copy_heap()
        export_threads(job.threads)
        if job.isolation == "server":
            resize_thread_pools(job.threads)
        end = _end_of(job, partial(send, messages))
        with suppress(Exception):  # after its last message, the parent may kill this process
            sys.stdout.flush()
            sys.stderr.flush()
        send(messages, end)
    except BaseException as error:
        send(messages, {"failed": True})  # this process prints the error itself
        model = job.cell.model.shown if job.cell.model else job.cell.workload
        if not isinstance(error, Exception):
            kind = type(error).__name__
            raise UserError(
                f"{model}: its step ends the program ({kind}: {error}); remove the call that ends it"
            ) from error
        if ASSERTED in str(error):
            raise UserError(f"{model}: {ASSERTION}") from error
        raise


def _end_of(job: Job, tell: Tell) -> dict[str, Any]:
    """Run a job, write its row if it has one, and return its last message."""
    try:
        result = do(job, tell)
    except RefusedError as error:
        details = {"mistake": error.mistake, "is_lacking": error.is_lacking}
        return {"done": REFUSED, "reason": str(error), "result": details}
    if not isinstance(job, RowJob):
        return dict(zip(("done", "reason", "result"), result, strict=True))
    write_record(result, Path(job.output))
    row, details = vars(result), {}
    if isinstance(job, TrialJob) and result.status == "ok":  # the command prints these values
        names = ("step_time_s", "samples_s", "flag_names", "peak_allocated_bytes", "rss_growth_bytes")
        details = {name: row[name] for name in names}
        details["on"] = row["device_name"] or row["device"]
    return {"done": result.status, "reason": result.reason, "result": details, "transient": may_pass(row)}


def do(job: Job, tell: Tell = ignore) -> Any:
    """Run a job with the current code; returns a row, or for a try or a probe the status, reason and result."""
    record = Path(job.written_files).absolute() if job.written_files else None
    code = code_of(job.kind, job.cell.workload, model=job.cell.model, written=record)
    module, function = WORK[job.kind]
    work = getattr(importlib.import_module(module), function)
    job = replace(
        job,
        code_key=code.key,
        model_key=code.model_key,
        measurement_key=code.measurement_key,
        packages=json.dumps(code.packages),
    )
    model = job.cell.model
    if record is None or model is None:
        return work(job, tell)
    home = Modules().folder_of(model.file or model.origin)
    with noted_writes(home, Path.cwd()) as noted:
        digests = partial(_digests_of_model, job, record, Modules())
        result = work(job, noting_builds(noted, digests, tell))
    WrittenFiles.read(record, home).write(record, noted)
    return result


def _digests_of_model(job: Job, record: Path, modules: Modules) -> dict[Path, str]:
    return code_of(job.kind, job.cell.workload, modules, job.cell.model, record).digests_of_model


def main() -> None:
    """Run a job in a fresh process, whose arguments are the job and the descriptors of the lifeline and messages."""
    text, lifeline, messages = sys.argv[1:]
    with one_line_errors():
        run_child(job_from_json(text), int(lifeline), int(messages))


def keep_torch_quiet() -> None:
    """Silence the warnings in INTERNAL, deprecation warnings within torch's code, and the profiler's messages."""
    for pattern in INTERNAL:
        warnings.filterwarnings("ignore", message=pattern)
    for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.filterwarnings("ignore", category=kind, module=r"torch(\.|$)")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # above the levels of all messages

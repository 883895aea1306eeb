"""Turns on a host: GPU trials share it; a CPU trial, or a job that computes, has it alone.

A fair readers-writer lock of all runs and users.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache

from crossover.machine.locks import folder_of_locks, holder_words, locked, make_folder, write_note

BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "KUBERNETES_SERVICE_HOST")
"""Variables of batch systems, in whose jobs a process must stay among the job's own."""

HANDED_DOWN = "CROSSOVER_TURNS"
"""The environment variable with the name of the lock under which the jobs of this machine wait for each other."""

HOST = "host"


def batch_job() -> str | None:
    """The batch system's number of this job, with the variable that holds it; None outside of any."""
    return next((f"{name}={os.environ[name]}" for name in BATCH_JOBS if name in os.environ), None)


def hand_down_turns() -> None:
    """Make the jobs that run here wait for each other; within a batch job, only for those of the same allocation."""
    os.environ[HANDED_DOWN] = batch_job() or HOST


@contextmanager
def host_turn(
    environment: Mapping[str, str], *, alone: bool, holder: str, tell: Callable[[str], None]
) -> Iterator[float]:
    """Wait for a turn, beside others or alone, and keep it while the block runs; yields the seconds waited.

    `holder` is what others read while they wait; `tell` takes the one line that this process prints if it waits. A
    batch job waits for nobody: its scheduler gave it the cores. Raises UserError if the folder cannot hold locks.
    """
    name = environment.get(HANDED_DOWN) or (HOST if batch_job() is None else None)
    if name is None:
        yield 0.0
        return
    folder = make_folder(folder_of_locks(environment))
    path = folder / f"{name.replace('/', '_')}.turn"
    started = time.monotonic()

    @cache
    def tell_once() -> None:
        holders = holder_words(path, "GPU trials, or by a process that left no note")
        tell(f"waiting for a turn on this host, which is held by {holders}")

    with ExitStack() as turn:
        # Whoever comes later waits in the queue, so that GPU trials cannot keep a CPU trial waiting for ever.
        with locked(path.with_suffix(".queue"), fcntl.LOCK_EX, tell_once):
            turn.enter_context(locked(path, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, tell_once))
        if alone:
            write_note(path, holder)
            turn.callback(write_note, path, None)
        yield time.monotonic() - started


@contextmanager
def computing(what: str) -> Iterator[None]:
    """Keep the host to this process for other work than a trial, such as drawing figures."""
    with host_turn(os.environ, alone=True, holder=what, tell=lambda line: print(line, flush=True)):
        yield

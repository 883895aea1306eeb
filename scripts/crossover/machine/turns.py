"""Turns on a host, by a readers-writer lock for all runs and users.

GPU trials share the host. A CPU trial, or a job that does other work, has it exclusively.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from crossover.machine.locks import describe_holder, folder_of_locks, locked, make_folder, write_note

BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")

HANDED_DOWN = "CROSSOVER_TURNS"
"""Environment variable that tells the jobs of this machine the name of their lock."""

HOST = "host"


def batch_job() -> str | None:
    """The batch system's variable and its value, as NAME=VALUE; None outside a batch job."""
    return next((f"{name}={os.environ[name]}" for name in BATCH_JOBS if name in os.environ), None)


def hand_down_turns() -> None:
    """Make the jobs on this machine wait for each other. Within a batch job, only those of the same allocation do."""
    os.environ[HANDED_DOWN] = batch_job() or HOST


@contextmanager
def host_turn(
    environment: Mapping[str, str], *, alone: bool, holder: str, tell: Callable[[str], None]
) -> Iterator[float]:
    """Wait for a turn, exclusive if `alone`, and keep it while the block runs; yields the seconds waited.

    `holder` describes this process to those that wait for it; `tell` receives a line if this process waits. A batch job
    started by a main process outside its allocation does not wait, since the scheduler gave it cores of its own. Raises
    UserError if the folder of the locks cannot be used.
    """
    path = _file_of_turns(environment)
    if path is None:
        yield 0.0
        return
    started = time.monotonic()

    @cache
    def tell_once() -> None:
        tell(f"waiting for a turn on this host, which is used by {_holders(path)}")

    with ExitStack() as turn:
        # Later trials wait in the queue, so that GPU trials cannot starve a CPU trial.
        with locked(path.with_suffix(".queue"), fcntl.LOCK_EX, tell_once):
            turn.enter_context(locked(path, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, tell_once))
        if alone:
            write_note(path, holder)
            turn.callback(write_note, path, None)
        yield time.monotonic() - started


def turn_of_others(environment: Mapping[str, str]) -> str | None:
    """Describe the processes that have a turn on this host; None if there are none, or if this job takes no turns."""
    path = _file_of_turns(environment)
    if path is None:
        return None
    try:
        with locked(path, fcntl.LOCK_EX):
            return None
    except BlockingIOError:
        return _holders(path)


def _file_of_turns(environment: Mapping[str, str]) -> Path | None:
    """The file whose lock is the turn; None in a batch job whose main process is not in the allocation."""
    name = environment.get(HANDED_DOWN) or (HOST if batch_job() is None else None)
    return None if name is None else make_folder(folder_of_locks(environment)) / f"{name.replace('/', '_')}.turn"


def _holders(path: Path) -> str:
    return describe_holder(path, "GPU trials, or by a process that left no note")


@contextmanager
def computing(what: str) -> Iterator[None]:
    """Reserve the host for work other than a trial, such as drawing figures."""
    with host_turn(os.environ, alone=True, holder=what, tell=lambda line: print(line, flush=True)):
        yield

"""Turns on a host, by a readers-writer lock of each user, whose holders other users can see.

GPU trials share the host. A CPU trial, or a job that does other work, has it exclusively.
"""

from __future__ import annotations

import fcntl
import gc
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossover.machine.locks import PRIVATE, Holder, describe, folder_of_locks, holders_of, locked, make_folder

BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")

HANDED_DOWN = "CROSSOVER_TURNS"
"""Environment variable that tells the jobs of this machine the name of their lock."""

HOST = "host"

WAITING = "waiting for a turn on this host, which is used by"

LIMIT_S = 600.0
"""Maximum time for which a job waits for other users, and age of their processes from which on it does not wait.

Otherwise any user could hold up all runs for ever."""

POLL_S = 0.1


def batch_job() -> str | None:
    """The batch system's variable and its value, as NAME=VALUE; None outside a batch job."""
    return next((f"{name}={os.environ[name]}" for name in BATCH_JOBS if name in os.environ), None)


def hand_down_turns() -> None:
    """Make the jobs on this machine wait for each other. Within a batch job, only those of the same allocation do."""
    os.environ[HANDED_DOWN] = batch_job() or HOST


@dataclass(frozen=True)
class Turn:
    waited_s: float
    missed: str | None = None
    """The process of another user for which this one has stopped waiting; None if the turn is exclusive to it."""


@contextmanager
def host_turn(environment: Mapping[str, str], *, alone: bool, tell: Callable[[str], None]) -> Iterator[Turn]:
    """Wait for a turn, exclusive if `alone`, and keep it while the block runs.

    `tell` receives a line if this process waits. It waits for this user's other processes, and for those of other users
    up to LIMIT_S; root waits for no other user. A batch job started by a main process outside its allocation does not
    wait, since the scheduler gave it cores of its own. Raises UserError if the folder of the locks cannot be used.
    """
    path = _file_of_turns(environment)
    if path is None:
        yield Turn(0.0)
        return
    started = time.monotonic()

    @cache
    def tell_once() -> None:
        tell(f"{WAITING} {describe(_holders(path, alone))}")

    with ExitStack() as turn:
        # Later trials wait in the queue, so that GPU trials cannot starve a CPU trial.
        with locked(path.with_suffix(".queue"), fcntl.LOCK_EX, tell_once, PRIVATE):
            missed = _take(turn, path, alone, tell_once, started + LIMIT_S)
        yield Turn(time.monotonic() - started, missed)


def _take(turn: ExitStack, path: Path, alone: bool, tell: Callable[[], None], deadline: float) -> str | None:
    """Lock this user's file once no other user has a turn, or after the deadline; returns who still has one."""
    while True:
        with ExitStack() as held:
            held.enter_context(locked(path, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, tell, PRIVATE))
            others = _others(path, alone)
            if time.monotonic() >= deadline or all(other.running_s > LIMIT_S for other in others):
                turn.enter_context(held.pop_all())
                return others[0].description if others else None
        tell()
        # Two users that see each other's lock must not try again at the same time.
        time.sleep(POLL_S * (1 + random.random()))


def _others(path: Path, alone: bool) -> list[Holder]:
    """Processes of other users with a turn that conflicts with that of this process."""
    if os.getuid() == 0:
        return []
    name = path.name.removesuffix(f".{os.getuid()}.turn")
    files = [file for file in path.parent.glob(f"{name}.*.turn") if file != path]
    return [holder for file in files for holder in holders_of(file) if alone or holder.is_exclusive]


def turn_of_others(environment: Mapping[str, str]) -> str | None:
    """Describe the processes that have a turn on this host; None if there are none, or if this job takes no turns."""
    path = _file_of_turns(environment)
    holders = [] if path is None else _holders(path, alone=True)
    return describe(holders) if holders else None


def _file_of_turns(environment: Mapping[str, str]) -> Path | None:
    """The file that this user locks for a turn; None in a batch job whose main process is not in the allocation."""
    name = environment.get(HANDED_DOWN) or (HOST if batch_job() is None else None)
    if name is None:
        return None
    return make_folder(folder_of_locks(environment)) / f"{name.replace('/', '_')}.{os.getuid()}.turn"


def _holders(path: Path, alone: bool) -> list[Holder]:
    return [holder for holder in (*_others(path, alone), *holders_of(path)) if holder.pid != os.getpid()]


@contextmanager
def computing() -> Iterator[None]:
    """Reserve the host for work other than a trial, such as drawing figures, in a process of its own.

    Garbage is looked for less often, and not among the modules: of the analysis of a quick run that is 18 %.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    with host_turn(os.environ, alone=True, tell=lambda line: print(line, flush=True)):
        yield

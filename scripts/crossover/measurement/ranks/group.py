"""The ranks of a trial: processes with a device each, of which the first is the trial, and orders the others.

The trial forks the others before any device is opened, so they need no launcher and no second import. Orders and
answers go through pipes. If a rank ends, the others may wait in a collective for ever, so a thread of the trial, which
sleeps until then, reports the rank and ends the trial.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import torch
from torch import distributed

from crossover.config.words import ranks_of_side
from crossover.machine.threads import confine
from crossover.measurement import Tell
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.process.jobs import Job
from crossover.measurement.step.endings import early_end, first_line, original

GRACE_S = 1.0
"""Time for other ranks to report why they end, and for the trial to end by itself, once one rank has ended."""

COMMUNICATION = re.compile(r"gloo|NCCL|ProcessGroup|process group|store|peer|Broken pipe", re.IGNORECASE)
"""In the message of an error that another rank's end may have caused."""

KILL_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


class Barrier:
    """Lets ranks go on once all have arrived, within a microsecond, by counters in shared memory."""

    def __init__(self, ranks: int) -> None:
        self._turns = memoryview(mmap.mmap(-1, 8 * ranks)).cast("q")

    def wait(self, rank: int) -> None:
        self._turns[rank] += 1
        while min(self._turns) < self._turns[rank]:
            os.sched_yield()


@dataclass
class Group:
    rank: int
    size: int
    store: str
    """File through which the ranks find each other."""
    barrier: Barrier
    pipes: list[Connection]
    """To all other ranks; on these, to the first."""
    steps: list[Step] = field(default_factory=list)
    """The steps that blocks may run, the same on each rank."""
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """What ranks can be asked to do together, by name."""
    ranks: dict[int, int] = field(default_factory=dict)
    """Numbers of the other ranks by process id."""
    samples_s: list[list[float]] = field(default_factory=list)
    """Seconds of each block on each rank."""
    is_closed: bool = False

    def connect(self, device: torch.device, limit_s: float) -> None:
        """Start torch's communication: NCCL between GPUs, gloo between processes on the CPU."""
        distributed.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            init_method=f"file://{self.store}",
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=limit_s),
            device_id=device if device.type == "cuda" else None,
        )

    def watch(self, watch: Stopwatch) -> Stopwatch:
        """A stopwatch of whose blocks all ranks run the steps, from one moment, until the last has finished."""
        return replace(watch, before=self._begin, slowest=self._slowest)

    def _begin(self, step: Step, steps: int) -> None:
        self._order("block", self.steps.index(step), steps)
        self.barrier.wait(self.rank)

    def _slowest(self, wall_s: float) -> float:
        self.samples_s.append([wall_s, *(pipe.recv() for pipe in self.pipes)])
        return max(self.samples_s[-1])

    def call(self, name: str, *arguments: Any) -> list[Any]:
        """Call one of `functions` on all ranks at once; returns the results in the order of the ranks."""
        self._order(name, *arguments)
        result = self.functions[name](*arguments)
        return [result, *(pipe.recv() for pipe in self.pipes)]

    def _order(self, *order: Any) -> None:
        for pipe in self.pipes:
            pipe.send(order)

    def obey(self, watch: Stopwatch) -> None:
        """On all ranks but the first: do as ordered until the end."""
        watch = replace(watch, before=lambda *_: self.barrier.wait(self.rank))
        (pipe,) = self.pipes
        with without_garbage_collection():
            while True:
                match pipe.recv():
                    case ("block", number, steps):
                        pipe.send(time_block(self.steps[number], steps, watch).wall_s)
                    case ("end",):
                        return
                    case (name, *arguments):
                        pipe.send(self.functions[name](*arguments))

    def await_report(self, error: BaseException) -> None:
        """If another rank's end may have caused the error, give the thread that reports it the time to do so."""
        if isinstance(error, EOFError | OSError) or COMMUNICATION.search(str(error)):
            time.sleep(3 * GRACE_S)

    def end(self, gracefully: bool) -> None:
        """End the other ranks; without `gracefully`, since the trial has failed, they are killed."""
        try:
            if gracefully:
                self._order("end")
                self.is_closed = True
                leave()
        except OSError as error:
            self.await_report(error)
        self.is_closed = True
        for pid in self.ranks:
            with suppress(ProcessLookupError, ChildProcessError):
                if not gracefully:
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def report_ends(self, ends: Mapping[Any, int], tell: Tell) -> None:
        """Once a rank has ended, and the trial has not, tell why and end the trial. `ends` has the process ids."""
        wait([*ends])
        time.sleep(GRACE_S)
        if self.is_closed:
            return
        # The first cause is a signal or an error of a rank's own; other ranks report that they lost it.
        causes = [self._cause(end, ends[end]) for end in wait([*ends], 0)]
        tell({"lost": min(causes, key=lambda cause: cause["is_lost"])})
        os._exit(1)

    def _cause(self, end: Any, pid: int) -> dict[str, Any]:
        name = f"process {self.ranks[pid] + 1} of {self.size}"
        try:
            return {**end.recv(), "name": name}
        except EOFError:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return {"name": name, "signal": max(0, -code) or signal.SIGABRT, "is_lost": False}


def leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def job_of_rank(job: Any, rank: int) -> Any:
    """The job with the device and the CPUs of one rank; of several GPUs, its own is the first visible one."""
    uuids, cpus = job.rank_uuids or [], job.rank_cpus or []
    own = {"uuid": uuids[rank]} if uuids else {}
    if uuids:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join([*uuids[rank:], *uuids[:rank]])
    if cpus:
        confine(cpus[rank])
        own["cpus"] = cpus[rank]
    return replace(job, **own)


def fork_ranks(job: Job, work: Callable[[Group, Any], None], tell: Tell) -> tuple[Group | None, Any]:
    """Fork the other ranks of a job, which do `work`; returns the group and the first rank's job (None for one rank).

    Call this before any device is opened and any thread started.
    """
    if (size := ranks_of_side(job.cell.device)) == 1:
        return None, job
    store, barrier = f"{tempfile.mkdtemp()}/store", Barrier(size)
    group = Group(0, size, store, barrier, [])
    ends: dict[Any, int] = {}
    parent = os.getpid()
    for rank in range(1, size):
        pipe, others_pipe = Pipe()
        end, others_end = Pipe(duplex=False)
        if not (pid := os.fork()):
            ctypes.CDLL(None).prctl(KILL_WITH_PARENT, signal.SIGKILL)
            if os.getppid() == parent:
                _run(work, Group(rank, size, store, barrier, [others_pipe]), job_of_rank(job, rank), others_end)
            os._exit(1)
        others_pipe.close()
        others_end.close()
        group.pipes.append(pipe)
        group.ranks[pid] = rank
        ends[end] = pid
    threading.Thread(target=group.report_ends, args=(ends, tell), daemon=True).start()
    return group, job_of_rank(job, 0)


def _run(work: Callable[[Group, Any], None], group: Group, job: Any, end: Any) -> None:
    try:
        work(group, job)
        leave()
    except BaseException as error:
        cause = original(error)
        status, reason = early_end(cause) or ("invalid", f"{type(cause).__name__}: {first_line(cause)}")
        is_lost = isinstance(cause, EOFError | OSError) or bool(COMMUNICATION.search(str(cause)))
        end.send({"status": status, "reason": reason, "is_lost": is_lost})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

"""The trial server: has imported torch, and forks a measuring process for each trial that asks.

Importing torch costs more than most measurements. The server never touches a GPU and never runs anything in parallel
before a fork, so a fork is as fresh as a process of its own from there on: own CUDA context, allocator and thread
pools. A workload, and what that imports, is imported in the fork alone. The server serves its own user only, forks
nothing once a file that it has imported was changed, and goes away by itself.
"""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crossover.config.workloads import NULL
from crossover.errors import one_line_errors
from crossover.machine.code_key import NULL_TRIAL, SERVER, WORK, code_of, digests_of
from crossover.measurement.process.child import run_child
from crossover.measurement.process.orders import Order, receive, tell
from crossover.measurement.process.requests import job_from_json
from crossover.measurement.process.server_key import WITHOUT_TORCH, server_key
from crossover.tables.columns import arrow_schema

IDLE_S = 30.0
REQUEST_LIMIT_S = 2.0


class Server:
    """Waits for orders and forks."""

    def __init__(self, listener: socket.socket, key: str, is_up_to_date: Callable[[], bool]) -> None:
        self.listener = listener
        self.key = key
        self.is_up_to_date = is_up_to_date
        self.outdated = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, self.answer)
        self.children: dict[int, socket.socket] = {}
        self.workflows: dict[int, int] = {}
        self.orphaned = False

    def serve(self) -> None:
        """Serve until idle for `IDLE_S`, until all workflows that asked are gone, or until the code has changed."""
        self._watch_children()
        idle_since = time.monotonic()
        while self.children or (time.monotonic() - idle_since < IDLE_S and not self.orphaned and not self.outdated):
            for key, _ in self.selector.select(timeout=1.0):
                key.data()
                idle_since = time.monotonic()

    def _watch_children(self) -> None:
        """Let the end of a child wake the selector."""
        reader, writer = os.pipe()
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(writer)

        def reap() -> None:
            with suppress(BlockingIOError):
                os.read(reader, 4096)
            self.reap()

        self.selector.register(reader, selectors.EVENT_READ, reap)

    def reap(self) -> None:
        """Tell the clients of ended children how they ended."""
        for pid, connection in list(self.children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                tell(connection, {"ended": os.waitstatus_to_exitcode(status)})
                connection.close()
                del self.children[pid]

    def answer(self) -> None:
        """Take one order; whatever is wrong with it, the next one finds the server well."""
        connection, _ = self.listener.accept()
        connection.settimeout(REQUEST_LIMIT_S)
        try:
            order, descriptors = receive(connection)
        except (OSError, ValueError, TypeError, KeyError):
            connection.close()
            return
        try:
            self.outdated = not self.is_up_to_date()
            if self.outdated or order.key != self.key:
                tell(connection, {"refused": "another version of code, packages or environment"})
                connection.close()
                return
            self._follow(order.workflow)
            pid = self._fork(order, descriptors, connection)
            self.children[pid] = connection
            tell(connection, {"child": pid})
        except (OSError, ValueError, TypeError, KeyError) as error:  # no more processes, or an order that is none
            tell(connection, {"refused": f"{type(error).__name__}: {error}"})
            connection.close()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _follow(self, workflow: int | None) -> None:
        """Notice when a workflow that uses this server is gone."""
        if workflow is None or workflow in self.workflows or not hasattr(os, "pidfd_open"):
            return
        with suppress(OSError):
            descriptor = os.pidfd_open(workflow)
            self.workflows[workflow] = descriptor
            self.orphaned = False

            def gone() -> None:
                self.selector.unregister(descriptor)
                os.close(descriptor)
                del self.workflows[workflow]
                self.orphaned = not self.workflows

            self.selector.register(descriptor, selectors.EVENT_READ, gone)

    def _fork(self, order: Order, descriptors: list[int], connection: socket.socket) -> int:
        """Fork the measuring process; returns its number in the server, never in the child."""
        pid = os.fork()
        if pid:
            with suppress(OSError):
                os.setpgid(pid, pid)  # before the client learns of it
            return pid
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.selector.close()
            self.listener.close()
            for other in (connection, *self.children.values()):
                other.close()
            code = become_child(order, descriptors)
        finally:
            os._exit(code)


def become_child(order: Order, descriptors: list[int]) -> int:
    """Put on what the client wears, measure, and return the exit code."""
    with suppress(PermissionError):
        os.setsid()
    output, error, lifeline, messages = descriptors
    os.dup2(output, 1)
    os.dup2(error, 2)
    os.environ.clear()
    os.environ.update(order.environment)
    tempfile.tempdir = None  # the folder for temporary files is the client's, too
    os.umask(order.umask)
    if order.affinity is not None:
        os.sched_setaffinity(0, order.affinity)
    try:
        os.chdir(order.folder)
        with one_line_errors():
            run_child(job_from_json(order.request), lifeline, messages)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def preload(torch: bool) -> None:
    """Import what every trial needs, and construct an optimizer, which imports the rest of torch.

    What only a workload needs is for its own trials to import: it may start threads, open the GPU or set variables.
    """
    import pyarrow.json
    import pyarrow.parquet  # noqa: F401

    importlib.import_module(preloaded(torch))
    arrow_schema()
    code_of("trial", NULL)  # so that a fork finds its own key sooner
    if torch:
        from torch import nn, optim, zeros

        optim.SGD([nn.Parameter(zeros(1))], lr=0.1)


def preloaded(torch: bool) -> str:
    """The module whose imports a server has."""
    return (WORK["trial"] if torch else NULL_TRIAL)[0]


def main() -> None:
    """Entry of the server process: its key, the path of its socket, and WITHOUT_TORCH perhaps are the arguments."""
    key, place, torch = sys.argv[1], Path(sys.argv[2]), WITHOUT_TORCH not in sys.argv[3:]
    environment = dict(os.environ)  # what is imported may add to it
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # or to ask for a GPU would open it, and no fork could use it
    imported = digests_of(SERVER, preloaded(torch))
    preload(torch)
    if server_key(environment, torch=torch) != key:  # something changed while the imports ran
        sys.exit("the packages or the environment changed while the trial server started")
    gc.collect()
    gc.freeze()  # the children share these pages
    with socket.socket(socket.AF_UNIX) as listener:
        beside = place.with_name(f"{place.name}.{os.getpid()}")
        listener.bind(str(beside))
        listener.listen(64)
        beside.rename(place)  # whoever finds the socket finds it listening
        own = place.stat().st_ino
        try:
            Server(listener, key, lambda: digests_of(SERVER, preloaded(torch)) == imported).serve()
        finally:
            with suppress(OSError):
                if place.stat().st_ino == own:
                    place.unlink()

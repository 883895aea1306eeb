"""The trial server: import torch once, and fork a measuring process for each trial.

Importing torch can take longer than a measurement. The server never uses a GPU and starts no thread before a fork, so
that each fork has its own CUDA context, allocator and thread pools, like a fresh process. Forks may have any number of
threads (`child.resize_thread_pools`). It serves only its own user, stops forking once a file that it imported has
changed, and exits when idle.

It keeps the locks of a fork's client until the fork is gone, so that the client need not wait for that.
"""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from crossover.config.models import Model
from crossover.config.workloads import OWN
from crossover.errors import one_line_errors
from crossover.machine.code_key import code_of, digests_of
from crossover.machine.entry_points import MEASUREMENT, SERVER, WORK
from crossover.machine.locks import HELD
from crossover.measurement.process.child import run_child
from crossover.measurement.process.jobs import job_from_json
from crossover.measurement.process.messages import DESCRIPTORS, receive_order, send
from crossover.measurement.process.server_key import server_key
from crossover.tables.columns import Measurement, write_record

IDLE_S = 30.0
REQUEST_LIMIT_S = 2.0


class Server:
    def __init__(self, listener: socket.socket, modules: Sequence[str], imported: Mapping[str, str]) -> None:
        """`imported` has the digests of the files of `modules`, from before they were imported."""
        self.listener = listener
        self.modules, self.imported = [*modules], imported
        self.outdated = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, self.answer)
        self.children: dict[int, tuple[socket.socket, list[int]]] = {}
        """The connection of each child's client, and the client's locks."""

    def serve(self) -> None:
        """Serve until idle for `IDLE_S`, or until the code has changed and no child is left."""
        idle_since = time.monotonic()
        while self.children or (time.monotonic() - idle_since < IDLE_S and not self.outdated):
            for key, _ in self.selector.select(timeout=1.0):
                key.data()
                idle_since = time.monotonic()

    def reap(self, pid: int, ended: int) -> None:
        self.selector.unregister(ended)
        os.close(ended)
        connection, locks = self.children.pop(pid)
        _tell(connection, {"ended": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
        connection.close()
        release(locks)

    def answer(self) -> None:
        """Handle one order; an error in an order does not end the server."""
        connection, _ = self.listener.accept()
        connection.settimeout(REQUEST_LIMIT_S)
        try:
            order, descriptors = receive_order(connection)
        except (OSError, ValueError):
            connection.close()
            return
        try:
            self.outdated = digests_of(SERVER, *self.modules) != self.imported
            if self.outdated:
                _tell(connection, {"outdated": True})
                connection.close()
                return
            HELD.update(locks := descriptors[DESCRIPTORS:])
            self.import_once(order["preloaded"], connection)
            pid = self._fork(order, descriptors[:DESCRIPTORS], connection)
            ended = os.pidfd_open(pid)
            self.children[pid] = connection, locks
            del descriptors[DESCRIPTORS:]
            self.selector.register(ended, selectors.EVENT_READ, partial(self.reap, pid, ended))
            _tell(connection, {"child": pid})
        except (OSError, ValueError) as error:  # for example, no more processes can be created
            _tell(connection, {"refused": str(error)})
            connection.close()
        finally:
            release(descriptors)

    def import_once(self, name: str | None, connection: socket.socket) -> None:
        """Import this module of the workloads' folder before the first job that needs it.

        If that fails, the trial imports it again, and says why.
        """
        module = f"{MEASUREMENT}.workloads.{name}"
        if name is None or module in self.modules:
            return
        _tell(connection, {"imports": name})
        self.modules.append(module)
        self.imported = digests_of(SERVER, *self.modules)
        with without_collections(), suppress(Exception):
            importlib.import_module(module)

    def _fork(self, order: Mapping[str, Any], descriptors: list[int], connection: socket.socket) -> int:
        """Fork the measuring process and return its process id; the child never returns."""
        pid = os.fork()
        if pid:
            with suppress(OSError):
                os.setpgid(pid, pid)  # before the client learns the process id
            return pid
        code = 1
        try:
            self.selector.close()
            self.listener.close()
            for other in (connection, *(client for client, _ in self.children.values())):
                other.close()
            code = become_child(order, descriptors)
        finally:
            os._exit(code)


def release(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        HELD.discard(descriptor)
        os.close(descriptor)


def _tell(connection: socket.socket, message: Mapping[str, Any]) -> None:
    with suppress(OSError):
        send(connection.fileno(), message)


def become_child(order: Mapping[str, Any], descriptors: list[int]) -> int:
    """Adopt the client's output, environment and folder, run its job, and return the exit code."""
    with suppress(PermissionError):
        os.setsid()
    output, error, lifeline, messages = descriptors
    os.dup2(output, 1)
    os.dup2(error, 2)
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None  # so that it follows the client's environment
    try:
        os.chdir(order["folder"])
        with one_line_errors():
            run_child(job_from_json(order["job"]), lifeline, messages)
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


@contextmanager
def without_collections() -> Iterator[None]:
    """Import without garbage collections, which would take a tenth of the time.

    Forks share the imported objects' pages, and collecting them would take a fifth of a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def preload(modules: Sequence[str]) -> None:
    """Import these modules, and do other work that is slow the first time, so that forks are fast.

    Workloads are imported in their trials, since they may start threads, open the GPU or set variables.
    """
    for name in modules:
        importlib.import_module(name)
    write_record(Measurement(), Path(os.devnull))
    import threadpoolctl  # noqa: F401 - each fork uses it
    from torch import nn, optim, zeros

    code_of("trial", OWN, model=Model("torch", "nn"))  # caches the digests of the files
    optim.SGD([nn.Parameter(zeros(1))], lr=0.1)  # torch imports much of itself only here


def main() -> None:
    """Run a server; the argument is the path of its socket, named by its key."""
    path = Path(sys.argv[1])
    environment = dict(os.environ)  # imports may change it
    # Otherwise torch.cuda.is_available opens the GPU, which no fork could then use.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    modules = [WORK["trial"][0]]
    imported = digests_of(SERVER, *modules)
    with without_collections():
        preload(modules)
    if server_key(environment) != path.name:
        sys.exit("the packages or the environment changed while the trial server started")
    with socket.socket(socket.AF_UNIX) as listener:
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        listener.bind(str(temporary))
        listener.listen(64)
        temporary.rename(path)  # so that the path appears only once the socket listens
        inode = path.stat().st_ino
        try:
            Server(listener, modules, imported).serve()
        finally:
            with suppress(OSError):
                if path.stat().st_ino == inode:
                    path.unlink()

"""The parent's side of measuring processes: start fresh processes, the trial server, and its forks."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossover.config.workloads import workload_traits
from crossover.home import PACKAGE
from crossover.machine.locks import HELD
from crossover.machine.threads import THREAD_VARIABLES
from crossover.measurement.process.jobs import Job, RowJob
from crossover.measurement.process.messages import Inbox, send_order
from crossover.measurement.process.server_key import server_key

START_LIMIT_S = 120.0
"""Time limit for the start of a server, which imports torch, perhaps from a cold disk, and for its later imports."""

ANSWER_LIMIT_S = 10.0
"""A server that takes longer to answer an order is considered hung."""

WITHOUT_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Keeps the allocator of Arrow from starting a thread when it is loaded."""

ONE_THREAD = dict.fromkeys(THREAD_VARIABLES, "1")
"""With more, OpenBLAS would start threads in a server when it is loaded."""

STARTED: list[subprocess.Popen[bytes]] = []
"""Servers that this process has started. Without a reference to a running server, Python would warn about it."""


class NoServerError(Exception):
    """No trial server can be used."""


class OutdatedServerError(NoServerError):
    """A file that the server imported has changed."""


@dataclass(frozen=True)
class Ending:
    """The exit code of a process, or the signal that ended it; both None if unknown."""

    exit_code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, code: int) -> Ending:
        return cls(signal=-code) if code < 0 else cls(exit_code=code)


class Child(ABC):
    """A measuring process, which ends when its parent closes the lifeline or exits."""

    pid: int

    def __init__(self) -> None:
        self.childs_lifeline, self.lifeline = os.pipe()
        messages, self.childs_messages = os.pipe()
        self.inbox = Inbox(messages)

    def close_childs_ends(self) -> None:
        """Close the child's ends in the parent, so that the parent notices when the child's copies close."""
        os.close(self.childs_lifeline)
        os.close(self.childs_messages)

    @abstractmethod
    def ending(self, wait_s: float) -> Ending | None:
        """How the process ended; None if it is still running after `wait_s` seconds."""

    def wait_for_end(self, wait_s: float, *, is_final: bool) -> None:
        """Wait after the child's last message; `is_final`: nothing but the end of this process depends on it."""
        del is_final
        self.ending(wait_s)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.ending(ANSWER_LIMIT_S)
        self.close()

    def close(self) -> None:
        os.close(self.lifeline)
        os.close(self.inbox.descriptor)


class FreshProcess(Child):
    def __init__(self, job: Job, environment: dict[str, str]) -> None:
        super().__init__()
        descriptors = (self.childs_lifeline, self.childs_messages)
        self.process = subprocess.Popen(
            [*entry("child"), job.to_json(), *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            cwd=existing_folder(),
            env=WITHOUT_THREADS | environment,
            pass_fds=descriptors,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.close_childs_ends()

    def ending(self, wait_s: float) -> Ending | None:
        try:
            return Ending.of(self.process.wait(wait_s))
        except subprocess.TimeoutExpired:
            return None


def existing_folder() -> str:
    """The folder for a measuring process: the working directory or, if it is gone, the root, since MKL needs one."""
    try:
        return os.getcwd()  # noqa: PTH109 - as a text
    except FileNotFoundError:
        return "/"


class ForkedProcess(Child):
    """A measuring process forked by the trial server; raises NoServerError if no server can be used."""

    def __init__(self, job: Job, environment: dict[str, str]) -> None:
        if sys.platform != "linux":
            raise NoServerError("it needs Linux")
        self.is_last = isinstance(job, RowJob)
        path = socket_of(environment)
        super().__init__()
        self.ended: Ending | None = None
        try:
            self.connection = _connect(path, environment)
            self.answers = Inbox(self.connection.fileno())
            self.pid = self._order(job, environment, path)
        except BaseException:
            super().close()
            raise
        finally:
            self.close_childs_ends()

    def _order(self, job: Job, environment: dict[str, str], path: Path) -> int:
        if job.cpus is None:
            job = replace(job, cpus=sorted(os.sched_getaffinity(0)))  # otherwise it would run on the server's CPUs
        preloaded = workload_traits(job.cell.workload).preloaded
        order = {"job": job.to_json(), "preloaded": preloaded, "environment": environment, "folder": existing_folder()}
        send_order(self.connection, order, [1, 2, self.childs_lifeline, self.childs_messages, *HELD])
        answer: dict[str, Any] = self.answers.next(ANSWER_LIMIT_S) or {}
        if "imports" in answer:
            answer = self.answers.next(START_LIMIT_S) or {}
        if "child" in answer:
            return int(answer["child"])
        self.connection.close()
        if "outdated" in answer:
            raise OutdatedServerError
        if not answer and not self.answers.closed:
            with suppress(OSError):
                path.unlink()  # the server hangs; the next trial starts a new one
        raise NoServerError(str(answer.get("refused", "it gave no answer")))

    def ending(self, wait_s: float) -> Ending | None:
        if self.ended is None:
            answer = self.answers.next(wait_s)
            if answer is not None:
                self.ended = Ending.of(answer["ended"])
            elif self.answers.closed:
                self.ended = Ending()
        return self.ended

    def wait_for_end(self, wait_s: float, *, is_final: bool) -> None:
        """Wait, unless the next trial may: the server keeps the locks until a CUDA context is closed, for example."""
        if is_final and self.is_last:
            self.ended = Ending()
        else:
            super().wait_for_end(wait_s, is_final=is_final)

    def close(self) -> None:
        super().close()
        self.connection.close()


def server_folder() -> Path:
    """The folder of this user's sockets; raises NoServerError if it cannot be made or is not private."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and os.access(runtime, os.W_OK) else Path(tempfile.gettempdir())
    folder = base / f"crossover-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise NoServerError(f"{folder}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise NoServerError(f"{folder} is not a folder of mode 0700 of this user")
    return folder


def socket_of(environment: dict[str, str]) -> Path:
    """The socket of the server that fits an environment; its name is the `server_key`."""
    return server_folder() / server_key(environment)


def _connect(path: Path, environment: dict[str, str]) -> socket.socket:
    if (connection := _connect_once(path)) is not None:
        return connection
    from filelock import FileLock, Timeout  # so that only one trial starts a server

    with suppress(Timeout), FileLock(f"{path}.lock", timeout=START_LIMIT_S):
        if (connection := _connect_once(path)) is None:
            _start(path, environment)
            connection = _connect_once(path)
        if connection is not None:
            return connection
    raise NoServerError("it did not start")


def _connect_once(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_LIMIT_S)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def _start(path: Path, environment: dict[str, str]) -> None:
    with suppress(OSError):
        path.unlink()
    with Path(f"{path}.log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*entry("server"), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=existing_folder(),
            env=WITHOUT_THREADS | environment | ONE_THREAD,
            start_new_session=True,
        )
    STARTED.append(server)
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and not path.exists():
        if server.poll() is not None:
            raise NoServerError(f"it did not start; see {path}.log")
        time.sleep(0.01)


def start_early() -> None:
    """Start this host's trial server in the background."""
    environment = dict(os.environ)

    def start() -> None:
        with suppress(NoServerError):
            _connect(socket_of(environment), environment).close()

    # A trial that needs a server before this one has started waits for the lock.
    threading.Thread(target=start, daemon=True).start()


def entry(module: str) -> list[str]:
    """The command that runs `main` of a module of this package in a new Python process.

    With -P, Python does not import from the working directory, which may contain a `queue.py`.
    """
    package = __name__.rpartition(".")[0]
    folder = str(PACKAGE.parent)  # on the path already if it is Python's folder of packages
    begin = f"import sys; {folder!r} in sys.path or sys.path.insert(0, {folder!r})"
    return [sys.executable, "-P", "-c", f"{begin}; from {package}.{module} import main; main()"]

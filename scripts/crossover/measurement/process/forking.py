"""The trial server's client: finds the server on this host, starts it, and has it fork a measuring process."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crossover.config.words import WORKFLOW
from crossover.config.workloads import NULL
from crossover.measurement.process.messages import Inbox
from crossover.measurement.process.orders import Order
from crossover.measurement.process.processes import Ending, Pipes, entry, kill_group, wait_readable
from crossover.measurement.process.requests import Job
from crossover.measurement.process.server_key import WITHOUT_TORCH, server_key

START_LIMIT_S = 120.0
"""Longest start of a server: it imports torch, perhaps from a cold disk."""

ANSWER_LIMIT_S = 10.0
"""Longest wait for a fork. A server that has not answered by then hangs."""

STARTED: list[subprocess.Popen[bytes]] = []
"""Servers that this process has started. They outlive it, and Python would warn of that if nobody held them."""


class NoServerError(Exception):
    """No trial server can be used, for the reason given."""


class ForkedProcess:
    """A measuring process forked by the trial server."""

    def __init__(self, job: Job, environment: dict[str, str]) -> None:
        torch = job.cell.workload != NULL
        key = server_key(environment, torch=torch)
        path = server_folder() / key
        self.pipes = Pipes.open()
        try:
            self.connection = _connect(path, key, environment, torch)
            self.pid = self._order(job, key, environment, path)
        except BaseException:
            self.pipes.close_childs()
            self.pipes.close_parents()
            raise
        self.pipes.close_childs()
        self.inbox = Inbox(self.pipes.parent_messages)
        self.told: Ending | None = None
        self.closed = False

    def _order(self, job: Job, key: str, environment: dict[str, str], path: Path) -> int:
        """Send the order and return the process number of the child."""
        workflow = environment.get(WORKFLOW, "")
        order = Order(
            key=key,
            request=job.to_json(),
            environment=environment,
            folder=str(Path.cwd()),
            umask=_umask(),
            affinity=sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            workflow=int(workflow) if workflow.isdigit() else None,
        )
        descriptors = [1, 2, self.pipes.lifeline, self.pipes.messages]
        data = json.dumps(asdict(order)).encode() + b"\n"
        with suppress(OSError):  # a server that closes early may have answered before
            sent = socket.send_fds(self.connection, [data], descriptors)
            if sent < len(data):
                self.connection.sendall(data[sent:])
        answer = _answer(self.connection, ANSWER_LIMIT_S)
        if "child" in answer:
            return int(answer["child"])
        self.connection.close()
        if answer.get("hung"):
            with suppress(OSError):
                path.unlink()  # the next trial starts a server that answers
        raise NoServerError(str(answer.get("refused", "it gave no answer")))

    def fileno(self) -> int | None:
        """Readable when the server tells of the end, or is gone itself."""
        return self.connection.fileno()

    def ending(self, wait_s: float) -> Ending | None:
        """How it ended, as the server tells; unknown where the server is gone."""
        if self.told is None:
            answer = _answer(self.connection, wait_s)
            if answer.get("hung"):
                return None
            self.told = Ending.of(answer["ended"]) if "ended" in answer else Ending()
        return self.told

    def kill(self) -> None:
        """End the process and its descendants."""
        if self.closed:
            return
        kill_group(self.pid)
        self.ending(ANSWER_LIMIT_S)
        self.closed = True
        self.connection.close()
        self.pipes.close_parents()


def server_folder() -> Path:
    """The folder of this user's sockets, readable by nobody else; raises NoServerError where it is not safe."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and os.access(runtime, os.W_OK) else Path(tempfile.gettempdir())
    folder = base / f"crossover-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoServerError(f"{folder}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise NoServerError(f"{folder} is not a folder of mode 0700 of this user")
    return folder


def _connect(path: Path, key: str, environment: dict[str, str], torch: bool) -> socket.socket:
    """A connection to the server of a key, which is started if there is none."""
    if (connection := _try(path)) is not None:
        return connection
    from filelock import FileLock, Timeout  # only the first trial starts a server

    with suppress(Timeout), FileLock(f"{path}.lock", timeout=START_LIMIT_S):
        if (connection := _try(path)) is None:
            _start(path, key, environment, torch)
            connection = _try(path)
        if connection is not None:
            return connection
    raise NoServerError("it did not start")


def _try(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_LIMIT_S)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def _start(path: Path, key: str, environment: dict[str, str], torch: bool) -> None:
    """Start a server and wait until it listens or has failed."""
    with suppress(OSError):
        path.unlink()
    with Path(f"{path}.log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*entry("server"), key, str(path), *([] if torch else [WITHOUT_TORCH])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    STARTED.append(server)
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and not path.exists():
        if server.poll() is not None:
            raise NoServerError(f"it did not start; see {path}.log")
        time.sleep(0.01)


def _answer(connection: socket.socket, wait_s: float) -> dict[str, Any]:
    """The server's next message; empty where it is gone, `hung` where it is silent."""
    data = b""
    deadline = time.monotonic() + wait_s
    while not data.endswith(b"\n"):
        if not wait_readable([connection.fileno()], deadline - time.monotonic()):
            return {"hung": True}
        try:
            more = connection.recv(1)  # byte by byte: what follows belongs to the next message
        except OSError:
            return {}
        if not more:
            return {}
        data += more
    try:
        answer: dict[str, Any] = json.loads(data)
    except ValueError:
        return {}
    return answer


def _umask() -> int:
    """This process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

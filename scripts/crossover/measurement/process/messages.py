"""What processes tell each other: JSON lines on pipes and sockets, and a client's order to the trial server."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

LONGEST_ORDER = 1 << 20
DESCRIPTORS = 4
"""Standard output, standard error, lifeline and messages of the child."""


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write one message to a pipe or a socket."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


class Inbox:
    """The reading end of a pipe or a socket of messages."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        """Whether nothing more will come."""
        self._rest = b""
        self._lines: list[bytes] = []

    def next(self, wait_s: float) -> dict[str, Any] | None:
        """The next message; None if none comes within `wait_s`, or if the other end is closed or talks nonsense."""
        deadline = time.monotonic() + wait_s
        while not self._lines and not self.closed:
            if not wait_readable([self.descriptor], deadline - time.monotonic()):
                return None
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                data = b""
            self.closed = not data
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        if not self._lines:
            return None
        try:
            message: dict[str, Any] = json.loads(self._lines.pop(0))
        except ValueError:
            self.closed = True
            return None
        return message


def wait_readable(descriptors: list[int], seconds: float) -> list[int]:
    """The descriptors that are readable, after at most `seconds`."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return [descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000)]


@dataclass(frozen=True)
class Order:
    """What a client sends to the trial server: the job, and what its process inherits."""

    key: str
    job: str
    environment: dict[str, str]
    folder: str
    umask: int
    workflow: int | None
    """Process of the workflow, whose end ends the server."""


def send_order(connection: socket.socket, order: Order, descriptors: list[int]) -> None:
    """Send an order and its descriptors."""
    data = json.dumps(asdict(order)).encode() + b"\n"
    with suppress(OSError):  # a server that closes early may have answered before
        sent = socket.send_fds(connection, [data], descriptors)
        connection.sendall(data[sent:])


def receive_order(connection: socket.socket) -> tuple[Order, list[int]]:
    """Read one order and its descriptors; raises ValueError, TypeError or OSError if it is not one of this user."""
    data, descriptors, _, _ = socket.recv_fds(connection, 65536, DESCRIPTORS)
    try:
        while not data.endswith(b"\n"):
            more = connection.recv(65536)
            if not more or len(data) > LONGEST_ORDER:
                raise ValueError("no whole order")
            data += more
        order = Order(**json.loads(data))
        if len(descriptors) != DESCRIPTORS or _peer_user(connection) != os.getuid():
            raise ValueError("not an order of this user")
    except BaseException:
        for descriptor in descriptors:  # or the client's log would stay open here
            os.close(descriptor)
        raise
    return order, descriptors


def _peer_user(connection: socket.socket) -> int:
    """The user at the other end of a Unix socket."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])

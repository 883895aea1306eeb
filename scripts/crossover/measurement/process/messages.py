"""Messages between processes as lines of JSON, on pipes and sockets, and orders to the trial server."""

from __future__ import annotations

import json
import os
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

DESCRIPTORS = 4
"""Descriptors for the child in an order: its standard output, standard error, lifeline and messages."""
MOST_DESCRIPTORS = 16
"""With those of the client's locks."""


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


class Inbox:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        self._rest = b""
        self._lines: list[bytes] = []

    def next(self, wait_s: float) -> dict[str, Any] | None:
        """The next message; None if none comes within `wait_s`, or if the other end is closed."""
        deadline = time.monotonic() + wait_s
        while not self._lines and not self.closed:
            if not wait_readable(self.descriptor, deadline - time.monotonic()):
                return None
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                data = b""
            self.closed = not data
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        return json.loads(self._lines.pop(0)) if self._lines else None


def wait_readable(descriptor: int, seconds: float) -> bool:
    """Wait until a descriptor is readable; returns False if it is not within `seconds`."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def send_order(connection: socket.socket, order: Mapping[str, Any], descriptors: list[int]) -> None:
    """Send an order to the trial server: a `job`, and the `environment`, `folder` and descriptors of its process.

    Further descriptors are those of locks, which the server keeps until the process is gone.
    """
    data = json.dumps(order).encode() + b"\n"
    with suppress(OSError):  # the server may have closed the connection, perhaps after an answer
        sent = socket.send_fds(connection, [data], descriptors)
        connection.sendall(data[sent:])


def receive_order(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Read one order and its descriptors; raises ValueError or OSError if the client disconnects too early."""
    data, descriptors, _, _ = socket.recv_fds(connection, 65536, MOST_DESCRIPTORS)
    try:
        while not data.endswith(b"\n"):
            chunk = connection.recv(65536)
            if not chunk:
                raise ValueError("no whole order")
            data += chunk
        return json.loads(data), descriptors
    except BaseException:
        for descriptor in descriptors:  # otherwise the client's log would stay open in the server
            os.close(descriptor)
        raise

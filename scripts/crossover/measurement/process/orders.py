"""What travels between the trial server and its clients over a Unix socket: orders one way, answers the other."""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LONGEST_ORDER = 1 << 20
DESCRIPTORS = 4
"""Standard output, standard error, lifeline and messages of the child."""


@dataclass(frozen=True)
class Order:
    """What a client sends: the trial, and what its process is to inherit."""

    key: str
    request: str
    environment: dict[str, str]
    folder: str
    umask: int
    affinity: list[int] | None
    workflow: int | None
    """Process of the workflow, whose end ends the server."""


def receive(connection: socket.socket) -> tuple[Order, list[int]]:
    """Read one order and its descriptors; raises ValueError or OSError where it is not one."""
    data, descriptors, _, _ = socket.recv_fds(connection, 65536, DESCRIPTORS)
    try:
        return _read_order(connection, data, descriptors), descriptors
    except BaseException:
        for descriptor in descriptors:  # or the client's log would stay open here
            os.close(descriptor)
        raise


def _read_order(connection: socket.socket, data: bytes, descriptors: list[int]) -> Order:
    """The rest of an order, checked."""
    while not data.endswith(b"\n"):
        more = connection.recv(65536)
        if not more or len(data) > LONGEST_ORDER:
            raise ValueError("no whole order")
        data += more
    order = Order(**json.loads(data))
    if len(descriptors) != DESCRIPTORS or peer_user(connection) != os.getuid():
        raise ValueError("not an order of this user")
    return order


def peer_user(connection: socket.socket) -> int:
    """The user at the other end of a Unix socket."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def tell(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send a message to a client, if it is still there."""
    with suppress(OSError):
        connection.sendall(json.dumps(message).encode() + b"\n")

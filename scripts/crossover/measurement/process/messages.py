"""Messages of a measuring process to its parent: one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any


def send(descriptor: int, message: Mapping[str, Any]) -> None:
    """Write one message to a pipe."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


class Inbox:
    """The reading end of a pipe of messages."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.rest = b""
        self.closed = False

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self.descriptor

    def read(self) -> Iterator[dict[str, Any]]:
        """Read what is there (blocking if nothing is) and yield the whole messages."""
        data = os.read(self.descriptor, 65536)
        self.closed = not data
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

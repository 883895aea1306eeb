"""What a measuring process writes to standard error, without a GPU's assertions over and over.

Each thread on the GPU whose assertion fails writes a line, thousands for one batch; the first one says it all.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ASSERTION = re.compile(rb"block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\],? Assertion ")
LAST_WORDS_S = 5.0
"""Longest wait for what is still written after a measuring process has ended."""


@contextmanager
def first_assertion_only(device: str, target: int = 2) -> Iterator[int]:
    """Yield a descriptor that passes on to `target` what is written to it, for a GPU without further assertions."""
    if device != "cuda":
        yield target
        return
    reader, writer = os.pipe()
    relay = threading.Thread(target=_relay, args=(reader, target), daemon=True)
    relay.start()
    try:
        yield writer
    finally:
        os.close(writer)
        relay.join(LAST_WORDS_S)


def _relay(reader: int, target: int) -> None:
    asserted = False
    with open(reader, "rb") as lines:
        for line in lines:
            if ASSERTION.search(line):
                if asserted:
                    continue
                asserted = True
            with suppress(OSError):  # on a full disk; who stops reading would stop the measuring process
                os.write(target, line)

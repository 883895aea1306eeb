"""Processes started by tests: waiting for them, and finding those still running."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psutil

T = TypeVar("T")
PATIENCE_S = 300
"""Maximum wait in seconds, longer than anything takes on a busy machine."""

TESTER = "CROSSOVER_TESTER"
"""The environment variable that marks processes of a test run; daemons inherit it, although their parent changes."""


def started_by(tester: str) -> list[psutil.Process]:
    """This process's descendants, and all processes with the tests' environment variable."""
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    return [
        process
        for process in psutil.process_iter(["cmdline", "environ"])
        if process.pid in children or (process.info["environ"] or {}).get(TESTER) == tester
    ]


def wait_for(condition: Callable[[], T], what: str) -> T:
    """The first true value; raises TimeoutError if none comes."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"waited {PATIENCE_S} s for {what}")

"""Processes that tests have started."""

from __future__ import annotations

import psutil

TESTER = "CROSSOVER_TESTER"
"""The variable by which a process says whose it is: a daemon inherits it, though its parent is another one by then."""


def started_by(tester: str) -> list[psutil.Process]:
    """Children of this process, with theirs, and whatever has the tester's variable; each knows its `cmdline`."""
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    return [
        process
        for process in psutil.process_iter(["cmdline", "environ"])
        if process.pid in children or (process.info["environ"] or {}).get(TESTER) == tester
    ]

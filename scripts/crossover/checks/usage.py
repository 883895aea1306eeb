"""What a command takes: wall time, CPU time and memory, its children's included."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossover.errors import UserError


@dataclass(frozen=True)
class Usage:
    """What a command took."""

    wall_s: float
    cpu_s: float
    """User and system, of all processes that it waited for."""
    peak_bytes: int
    """The largest resident memory of any one of these, or of the process that started them, at that time."""


def run_measured(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Usage:
    """Run a command in a folder, its output in `log`; raises UserError where it fails."""
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UserError(f"{' '.join(command)}: ended with status {process.returncode}; see {log}")
    return Usage(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)

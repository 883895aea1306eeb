"""Holds a fake GPU as a trial would; `test_lease.py` starts several of these at once.

Arguments: holder, folder of the locks, GPUs with commas between, how to hold.
It reads a line from standard input before it begins, and writes one for each event to standard output.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from crossover.machine.lease import lease
from crossover.machine.lock_files import LEASES
from fake_nvml import FakeGpu, FakeNvml


def say(event: str) -> None:
    print(f"{time.monotonic()} {event}", flush=True)


def main(holder: str, folder: str, gpus: str, how: str) -> None:
    say("ready")
    sys.stdin.readline()
    sys.modules["pynvml"] = FakeNvml(*map(FakeGpu, gpus.split(",")))  # type: ignore[assignment]
    with lease("cuda", {LEASES: folder}, holder=holder, tell=say) as leased:
        say(f"holds {leased.uuid}")
        if how == "briefly":
            time.sleep(0.2)
        if how == "with-child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
            say(f"child {child.pid}")
        if how == "with-fork":
            if (forked := os.fork()) == 0:
                time.sleep(60)
            say(f"child {forked}")
        if how != "briefly":
            time.sleep(60)
        say(f"frees {leased.uuid}")


if __name__ == "__main__":
    main(*sys.argv[1:])

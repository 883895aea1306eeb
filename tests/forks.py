"""Code in forks of one process that has imported torch: as good as a new process, without the seconds of the import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from crossover.machine.threads import THREAD_VARIABLES

PARENT = """
import json, os, sys, traceback
import torch
for line in sys.stdin:
    code, arguments, output = json.loads(line)
    if not (pid := os.fork()):
        file = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv[1:] = arguments
        try:
            exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    print("done", flush=True)
"""


class Forks:
    """Runs code, one after the other, each in a fork that has imported nothing but torch."""

    def __init__(self, folder: Path, scripts: Path) -> None:
        self.output = folder / "output"
        variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONPATH": str(scripts)}
        variables["MALLOC_MMAP_THRESHOLD_"] = "65536"  # so that freed tensors leave no gaps in the heap
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PARENT], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, *arguments: str) -> Any:
        """The value that the code prints as JSON in its last line."""
        assert self.parent.stdin
        assert self.parent.stdout
        self.output.unlink(missing_ok=True)
        print(json.dumps([code, arguments, str(self.output)]), file=self.parent.stdin, flush=True)
        assert self.parent.stdout.readline() == "done\n"
        printed = self.output.read_text()
        try:
            return json.loads(printed.splitlines()[-1])
        except (IndexError, ValueError):
            raise AssertionError(printed) from None

    def end(self) -> None:
        self.parent.communicate()

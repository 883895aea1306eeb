"""A copy of the scripts with an additional workload `planted`, whose size selects how it fails."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil

from processes import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[1]
WELL, CRASH, HANG, RAISE, HOG, KILLED, LITTER, STUBBORN, CRASH_LATER = range(1, 10)

WORKLOAD = """
import ctypes, os, signal, subprocess, sys, time
import torch
from torch import nn
from crossover.measurement.step.tasks import TrainingTask

SIZE_NAME = "faults"
SIZE_RANGE = (1, 99)
DATASET = "disc"
PROTOCOLS = ("resident",)
WELL, CRASH, HANG, RAISE, HOG, KILLED, LITTER, STUBBORN, CRASH_LATER = range(1, 10)


def build_model(size):
    return nn.Linear(2, 2)


class Planted(TrainingTask):
    def __init__(self, cell, data, arithmetic):
        super().__init__(build_model(cell.size), arithmetic, (data["features"], data["labels"]))
        self.fault = cell.size
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.steps = 0

    def next_inputs(self):
        return self.nth_batch(0, 10)

    def forward(self, model, features, labels):
        if self.fault == CRASH_LATER and model is not self.model:  # the reference of the numerical check
            ctypes.string_at(0)
        return (nn.functional.cross_entropy(model(features), labels),)

    def end_step(self):
        self.steps += 1
        if self.steps < 3:
            return
        if self.fault == CRASH:
            ctypes.string_at(0)
        elif self.fault == HANG:
            if "PLANTED_BEGUN" in os.environ:
                with open(os.environ["PLANTED_BEGUN"], "w") as file:
                    file.write(str(os.getpid()))
            time.sleep(1000)
        elif self.fault == RAISE:
            raise ValueError("planted")
        elif self.fault == HOG:
            self.hoard = [torch.ones(2**25, device=self.arithmetic.device) for _ in range(2**20)]
        elif self.fault == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == LITTER and self.steps == 3:
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", "litter-of-crossover"])
        elif self.fault == STUBBORN:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            time.sleep(1000)


def build(cell, data, arithmetic):
    return Planted(cell, data, arithmetic)
"""


def plant(folder: Path, workload: str = WORKLOAD) -> Path:
    """Copy the scripts to a folder, add the workload's code, and return the path of the copied measure_cell.py."""
    scripts = folder / "scripts"
    shutil.copytree(ROOT / "scripts", scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "crossover" / "measurement" / "workloads" / "planted.py").write_text(workload)
    return scripts / "measure_cell.py"


def kill_while_hanging(command: list[str], begun: Path, number: signal.Signals) -> tuple[int, str]:
    """Start a job whose workload HANGs, send it a signal when it hangs, and return its status and standard error.

    The workload writes its process id to `begun`. Asserts that this process has ended too.
    """
    environment = {**os.environ, "PLANTED_BEGUN": str(begun)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as job:
        wait_for(lambda: begun.exists() and begun.read_text(), "the workload")
        measuring = psutil.Process(int(begun.read_text()))
        job.send_signal(number)
        _, said = job.communicate(timeout=PATIENCE_S)
    assert psutil.wait_procs([measuring], timeout=PATIENCE_S)[1] == []
    return job.returncode, said

"""No data loader worker outlives its trial, however the trial ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file

import trials
from crossover.config.studies import Cell, Effort
from processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]


def writers(pipe: int) -> set[int]:
    """The processes whose standard output is this pipe, except this process."""
    inode = f"pipe:[{os.fstat(pipe).st_ino}]"
    pids = set()
    for process in psutil.process_iter():
        try:
            if Path(f"/proc/{process.pid}/fd/1").readlink().name == inode:
                pids.add(process.pid)
        except OSError:  # it has ended, or belongs to another user
            continue
    return pids - {os.getpid()}


@pytest.mark.parametrize(
    ("isolation", "ending"),
    [("process", signal.SIGKILL), ("server", signal.SIGTERM)],
    ids=["process, killed", "server, ended"],
)
def test_no_worker_survives_a_killed_trial(tmp_path: Path, isolation: str, ending: signal.Signals) -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, size=(64, 28, 28), dtype=np.uint8)
    save_file({"features": images, "labels": random.integers(0, 10, 64)}, tmp_path / "mnist.safetensors")
    cell = Cell("loaders", "mnist_cnn", "as_published", 8, "fp32", "eager", 2, "cpu")
    effort = Effort(warmup_min_s=100.0, warmup_long_s=100.0, warmup_max_s=100.0)
    options = trials.trial_options(cell, effort, cpu_threads=1, isolation=isolation)
    options += [f"--dataset={tmp_path}/mnist.safetensors", f"--output={tmp_path}/trial.parquet"]
    with subprocess.Popen(
        [sys.executable, str(trials.SCRIPT), *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as script:
        assert script.stdout is not None
        pipe = script.stdout.fileno()
        wait_for(lambda: len(writers(pipe)) == 4, "the script, the measuring process, and two workers")
        script.send_signal(ending)
        script.wait()
        wait_for(lambda: not writers(pipe), "the end of workers, which ask every 5 s whether their parent lives")
    assert not (tmp_path / "trial.parquet").exists()

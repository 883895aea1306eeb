"""Trials on two processes of the CPU with a core each, which train as two GPUs do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from crossover.machine.threads import usable_cores
from processes import wait_for
from trials import ROOT, SCRIPT, read_row

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(usable_cores() < 2 or sys.platform != "linux", reason="needs two cores, and Linux"),
]

MODELS = """
import os, signal, time, traceback
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def net(size, batch_size):
    return nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1)), *data(size, batch_size)


def data(size, batch_size):
    return torch.randn(batch_size, size), torch.randn(batch_size, 1)


def normalised(size, batch_size):
    return nn.Sequential(nn.Linear(size, size), nn.BatchNorm1d(size), nn.Linear(size, 1)), *data(size, batch_size)


class OnOneRank(nn.Sequential):
    def forward(self, inputs):
        if distributed.is_initialized() and distributed.get_rank() == 1:
            self.on_second()
        return super().forward(inputs)


class Failing(OnOneRank):
    def on_second(self):
        raise MemoryError("the second process has too little")


class Hanging(OnOneRank):
    def on_second(self):
        time.sleep(1000)


class EndingInMemoryPass(OnOneRank):
    def on_second(self):
        if any("/measurement/memory/" in frame.filename for frame in traceback.extract_stack()):
            os.kill(os.getpid(), signal.SIGKILL)


class Sleeping(nn.Linear):
    def forward(self, inputs):
        time.sleep(0.04)
        return super().forward(inputs)


def sleeping(size, batch_size):
    return Sleeping(size, 1), *data(size, batch_size)


def failing(size, batch_size):
    return Failing(nn.Linear(size, 1)), *data(size, batch_size)


def hanging(size, batch_size):
    return Hanging(nn.Linear(size, 1)), *data(size, batch_size)


def ending_in_memory_pass(size, batch_size):
    return EndingInMemoryPass(nn.Linear(size, 1)), *data(size, batch_size)


def unused(size, batch_size):
    model = nn.Linear(size, 1)
    model.other = nn.Linear(size, 1)
    return model, *data(size, batch_size)
"""

Measure = Callable[..., tuple[str, dict[str, Any]]]


def command(
    folder: Path, name: str, side: str, batch_size: int = 32, protocol: str = "resident", **job: Any
) -> list[str]:
    cell = {
        "model": {"origin": "models.py", "name": name, "mode": "train"},
        "size": 64,
        "batch_size": batch_size,
        "protocol": protocol,
    }
    effort = {"warmup_min_steps": 3, "warmup_min_s": 0, "warmup_tolerance": 1, "blocks_min": 5, "timed_max_s": 0.3}
    described = {"cell": cell, "effort": effort, "time_limit_s": 60, **job}
    return [sys.executable, str(SCRIPT), json.dumps(described), f"--device={side}", f"--output={folder}/row.parquet"]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    (tmp_path / "models.py").write_text(MODELS)

    def run(name: str, side: str = "cpu-2x1", **job: Any) -> tuple[str, dict[str, Any]]:
        done = subprocess.run(
            command(tmp_path, name, side, **job), cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), read_row(tmp_path / "row.parquet")

    return run


def test_two_processes_share_a_batch_and_average_their_gradients(measure: Measure) -> None:
    _, alone = measure("net", "cpu-1")
    _, row = measure("net")
    assert (row["status"], row["check"], row["device"]) == ("ok", "passed", "cpu-2x1")
    assert row["averaged_error"] < 1e-5
    assert len(row["rank_times_s"]) == 2
    assert row["averaged_bytes"] == 4 * row["parameters"]
    assert alone["averaged_bytes"] is None
    assert row["flops_per_step"] == alone["flops_per_step"] > 0
    assert (row["samples_per_step"], alone["samples_per_step"]) == (32, 32)
    assert row["timed_steps"] == row["block_steps"] * len(row["samples_s"])
    assert 0 < row["unsynced_s"] < row["split_step_s"]
    assert alone["unsynced_s"] is alone["rank_times_s"] is None


def test_with_a_batch_each_the_time_is_for_one_batch(measure: Measure) -> None:
    _, row = measure("net", protocol="each")
    assert (row["status"], row["samples_per_step"]) == ("ok", 32)
    assert row["averaged_error"] < 1e-5
    assert row["timed_steps"] == 2 * row["block_steps"] * len(row["samples_s"])
    assert row["timed_s"] == pytest.approx(2 * row["block_steps"] * sum(row["samples_s"]))
    assert row["step_time_s"] < sorted(row["samples_s"])[-1] * 1.0001


def test_parts_of_unequal_size_have_all_operations_and_are_told(measure: Measure) -> None:
    _, alone = measure("net", "cpu-1", batch_size=3)
    _, row = measure("net", batch_size=3)
    assert row["flops_per_step"] == alone["flops_per_step"] > 0
    assert "parts of 1 and 2 samples weigh the same" in row["reason"]


def test_statistics_of_a_part_are_told(measure: Measure) -> None:
    _, row = measure("normalised")
    assert (row["status"], row["check"]) == ("ok", "passed")
    assert re.search(r"averaged over 2 parts, gradients differ from those of the whole batch by 0\.\d+", row["reason"])


@pytest.mark.parametrize(
    ("name", "job", "line"),
    [
        ("net", {"batch_size": 1}, "unsupported: cpu-2x1 shares out a batch of at least 2 samples, and this one has 1"),
        (
            "unused",
            {},
            "unsupported: cpu-2x1 cannot train this model: the loss does not depend on all of its parameters",
        ),
        (
            "net",
            {"protocol": "loaded"},
            "unsupported: cpu-2x1 runs in protocol resident or each and execution eager only",
        ),
        ("failing", {}, "oom: a step of models.py:failing: process 2 of 2: the second process has too little"),
        ("hanging", {"time_limit_s": 3}, "timeout: a step of models.py:hanging: not done after 3 s"),
    ],
)
def test_what_cannot_be_measured_is_one_line(measure: Measure, name: str, job: dict[str, Any], line: str) -> None:
    said, row = measure(name, **job)
    assert said.startswith(line)
    assert said.count("\n") == 0
    assert row["step_time_s"] is None


def test_a_killed_process_ends_the_trial_which_is_measured_once_more(tmp_path: Path) -> None:
    """The second process; tests of one device kill the first."""
    (tmp_path / "models.py").write_text(MODELS)
    long = {"warmup_min_steps": 3, "warmup_min_s": 3, "warmup_max_s": 4}
    trial = subprocess.Popen(
        command(tmp_path, "net", "cpu-2x1", effort=long, isolation="process"),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )

    def ranks() -> list[psutil.Process]:
        found = psutil.Process(trial.pid).children(recursive=True)
        # Both train once torch's communication has started its threads.
        return sorted(found, key=lambda p: p.pid) if len(found) == 2 and all(p.num_threads() > 3 for p in found) else []

    pids = [process.pid for process in wait_for(ranks, "two processes that train")]
    time.sleep(0.5)
    os.kill(pids[1], signal.SIGKILL)
    _, said = trial.communicate(timeout=120)
    assert said.splitlines()[0].endswith("process 2 of 2 was ended from outside (SIGKILL); measuring once more")
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["attempts"]) == ("ok", 2)
    assert not any(map(psutil.pid_exists, pids))


def test_a_process_that_ends_after_the_timing_leaves_the_time_and_one_reason(measure: Measure) -> None:
    said, row = measure("ending_in_memory_pass")
    assert said.count("\n") == 0
    assert (row["status"], row["attempts"]) == ("ok", 1)
    assert row["reason"] == (
        "memory pass: ending_in_memory_pass(64, 32) of models.py: process 2 of 2 was ended from outside (SIGKILL); "
        "not begun: memory split, count of operations, communication"
    )


PLANTED = """
import sys, time
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from crossover.measurement.process.command import read_job
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.process.reservation import reserve
from crossover.measurement.ranks import parallel
from crossover.measurement.ranks.trial import run
from crossover.tables.columns import write_record
from pathlib import Path


def all_reduce(state, bucket):
    if PLANTED == "nothing":
        done = Future()
        done.set_result(bucket.buffer())
        return done
    time.sleep(float(PLANTED))
    return allreduce_hook(state, bucket)


class Planted(DistributedDataParallel):
    def __init__(self, model):
        super().__init__(model)
        self.register_comm_hook(None, all_reduce)


PLANTED, *arguments = sys.argv[1:]
parallel.DistributedDataParallel = Planted
with reserve(read_job(TrialJob, None, arguments)) as job:
    write_record(run(job), Path(job.output))
"""


def with_planted(folder: Path, planted: str, name: str) -> dict[str, Any]:
    """The row of a trial whose all-reduce takes so many seconds longer, or averages nothing."""
    (folder / "models.py").write_text(MODELS)
    options = command(folder, name, "cpu-2x1")[2:]
    paths = os.pathsep.join([str(ROOT / "scripts"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, planted, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return read_row(folder / "row.parquet")


def test_the_share_of_communication_is_that_of_a_planted_delay(tmp_path: Path) -> None:
    """A step sleeps for 40 ms, and gloo's own time is that without a delay.

    Other programs may stretch the rest of a step, so that of three attempts, one must be right.
    """
    found = []
    for _ in range(3):
        plain, delayed = (with_planted(tmp_path, delay_s, "sleeping") for delay_s in ("0", "0.04"))
        own_s = plain["split_step_s"] - plain["unsynced_s"]
        share = 1 - delayed["unsynced_s"] / delayed["split_step_s"]
        longer_s = delayed["step_time_s"] - plain["step_time_s"]
        found.append((share - (own_s + 0.04) / (own_s + 0.08), longer_s))
        if abs(found[-1][0]) < 0.05 and longer_s == pytest.approx(0.04, abs=0.01):
            return
    raise AssertionError(found)

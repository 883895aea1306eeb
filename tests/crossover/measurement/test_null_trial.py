"""The workload that does nothing, measured where there is no torch at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crossover.config.studies import Cell, Effort
from crossover.config.words import AXES
from crossover.config.workloads import NULL
from crossover.measurement.null_trial import run_null_trial
from crossover.measurement.process.jobs import TrialJob
from trials import SCRIPT, read_row

CELL = Cell("s", NULL, "resident", 1, "bf16", "compile", 7, "cpu")
JOB = TrialJob(
    cell=CELL,
    trial=2,
    seed=0,
    dataset=None,
    output="",
    threads=3,
    time_limit_s=60.0,
    effort=Effort(timed_min_s=100.0),
)


def test_it_has_a_time_whatever_the_effort() -> None:
    told: list[dict[str, Any]] = []
    row = run_null_trial(JOB, told.append)
    assert (row.status, row.trial, row.threads, row.size, row.device) == ("ok", 2, 3, 7, "cpu")
    assert row.parameters == 7
    assert (row.step_time_s or 0) > 0
    assert len(row.samples_s or []) >= 2
    assert json.loads(row.effort or "")["timed_min_s"] == 0
    assert row.torch_version is None
    assert {axis: told[0]["begun"][axis] for axis in AXES} == {axis: getattr(CELL, axis) for axis in AXES}


@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["server", "process"])
def test_no_process_of_it_needs_torch(tmp_path: Path, isolation: str) -> None:
    """A module of that name which cannot be imported stands in for a machine without it."""
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    options = ["--workload=null", "--size=1", "--batch-size=1", "--device=cpu", f"--isolation={isolation}"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--dataset=", f"--output={tmp_path / 'row.parquet'}"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["isolation"], row["workload"]) == ("ok", isolation, NULL)

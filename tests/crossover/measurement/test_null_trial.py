"""The workload that does nothing, measured where there is no torch at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crossover.config.studies import Cell, Effort
from crossover.config.words import AXES
from crossover.config.workloads import NULL
from crossover.measurement.null_trial import run_null_trial
from crossover.measurement.process.requests import Request
from trials import SCRIPT, read_row

CELL = Cell("s", NULL, "resident", 1, "bf16", "compile", 7, "cpu")
REQUEST = Request(CELL, 2, 0, None, "", 3, 60.0, Effort(timed_min_s=100.0))


def test_it_has_a_time_whatever_the_effort() -> None:
    facts: list[dict[str, object]] = []
    row = run_null_trial(REQUEST, facts.append)
    assert (row.status, row.trial, row.threads, row.size, row.device) == ("ok", 2, 3, 7, "cpu")
    assert row.step_time_s is not None
    assert row.step_time_s > 0
    assert row.samples_s is not None
    assert len(row.samples_s) >= 2
    assert json.loads(row.effort or "")["timed_min_s"] == 0
    assert row.torch_version is None
    assert {axis: facts[0][axis] for axis in AXES} == {axis: getattr(CELL, axis) for axis in AXES}


@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["server", "process", "none"])
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


def test_rows_of_cells_differ_in_their_axes_only_where_they_should() -> None:
    first, second = (run_null_trial(replace(REQUEST, cell=replace(CELL, size=size))) for size in (1, 2))
    assert (first.parameters, second.parameters) == (1, 2)
    assert first.effort == second.effort

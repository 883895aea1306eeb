"""Results that were copied without Snakemake's records are measured again only if their key differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workflow_copy import WorkflowCopy

pytestmark = pytest.mark.slow


def copied(run: WorkflowCopy, path: Path) -> WorkflowCopy:
    """A copy with new times, the oldest in cells/, and without Snakemake's records."""
    copy = WorkflowCopy.copy_of(run, path)
    shutil.rmtree(path / ".snakemake")
    for number, file in enumerate(sorted(copy.results.rglob("*"))):
        os.utime(file, (1.7e9 + number, 1.7e9 + number))
    return copy


def test_copied_results_are_measured_again_exactly_if_their_key_differs_and_they_are_asked_for(tmp_path: Path) -> None:
    run = WorkflowCopy(tmp_path / "run")
    run.pretend(devices=["cpu"])
    run.run("results/measurements.parquet", "results/plan.json")
    trials = len([*run.results.rglob("trial-*.parquet")])
    assert trials
    copy = copied(run, tmp_path / "copy")
    assert copy.would_run()["measure_cell"] == 0
    copy.config(seed=3)
    done = copy.run("--dry-run")
    assert f"{trials} results are measured again: seed was 0, is 3" in done
    assert copy.would_run()["measure_cell"] == trials
    row = next(copy.results.rglob("trial-1.parquet")).relative_to(copy.path)
    assert copy.would_run(str(row))["measure_cell"] == 1


def test_results_with_snakemakes_records_are_kept_in_a_folder_at_another_depth(tmp_path: Path) -> None:
    run = WorkflowCopy(tmp_path / "run")
    run.pretend(devices=["cpu"])
    here, there = tmp_path / "here", tmp_path / "far" / "away"
    here.mkdir()
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "-s"]
    rows = ["results/measurements.parquet", "results/plan.json"]
    subprocess.run([*snakemake, "../run/Snakefile", *rows], cwd=here, check=True, timeout=300)
    shutil.copytree(here, there)
    dry = [*snakemake, "../../run/Snakefile", "--dry-run", *rows]
    done = subprocess.run(dry, cwd=there, check=True, timeout=300, capture_output=True, text=True)
    assert "measure_cell" not in done.stdout + done.stderr

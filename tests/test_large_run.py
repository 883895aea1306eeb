"""A run with many trials is planned round by round; the limit is lowered, and stand-in trials are measured."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from crossover.plan.run_plan import MOST_AT_ONCE
from workflow_copy import WorkflowCopy

TARGET = "results/measurements.parquet"


@pytest.fixture
def workflow(tmp_path: Path) -> WorkflowCopy:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.pretend(devices=["cpu"], trials=3)
    workflow.edit("studies/disc_depth", refinement=None)
    limit_trials(workflow, 5)
    return workflow


def limit_trials(workflow: WorkflowCopy, most: int) -> None:
    """Plan the rounds of a first grid with more than `most` trials one after another."""
    workflow.set_constant("plan/run_plan", "MOST_AT_ONCE", most)


def measured(workflow: WorkflowCopy) -> list[tuple[int, int]]:
    """Trial and size of the trials measured since the last call, in order."""
    notes = sorted(workflow.notes(), key=lambda note: note["began"])
    for path in (workflow.path / "notes").iterdir():
        path.unlink()
    return [(note["trial"], note["size"]) for note in notes]


def rows(workflow: WorkflowCopy) -> set[tuple[int, int]]:
    table = pd.read_parquet(workflow.path / TARGET)
    return {*zip(table["trial"], table["size"], strict=True)}


@pytest.mark.slow
def test_the_rounds_of_a_large_run_follow_each_other_and_go_on_after_a_stop(workflow: WorkflowCopy) -> None:
    everything = {(trial, size) for trial in (1, 2, 3) for size in (2, 3)}
    jobs = workflow.would_run(TARGET)
    assert (jobs["measure_cell"], jobs["plan_round"], jobs["disc_depth 1"]) == (2, 1, 2)

    # A trial of the second round ends the run, which goes on there.
    script = workflow.path / "scripts" / "measure_cell.py"
    works = script.read_text()
    script.write_text("import sys\nif '--trial=2' in sys.argv: sys.exit('error: it fails')\n" + works)
    stopped = workflow.snakemake(TARGET)
    assert stopped.returncode != 0
    assert "To measure: 6 trials in 3 rounds." in stopped.stdout + stopped.stderr
    assert {trial for trial, _ in measured(workflow)} == {1}
    script.write_text(works)
    jobs = workflow.would_run(TARGET)
    assert (jobs["measure_cell"], jobs["plan_round"], jobs["disc_depth 2"]) == (2, 1, 2)
    output = workflow.run(TARGET)
    assert "To measure: 4 trials in 2 rounds." in output
    assert "Measured 4 of 4 trials." in output
    assert [trial for trial, _ in measured(workflow)] == [2, 2, 3, 3]
    assert rows(workflow) == everything
    assert workflow.would_run(TARGET) == Counter()
    assert "To measure: 6 trials in 3 rounds." in workflow.run("--dry-run", TARGET, "--config", "seed=1")

    # A deleted row is measured again, and a further round follows.
    next(workflow.results.rglob("size-2/cpu/trial-1.parquet")).unlink()
    (workflow.path / TARGET).unlink()
    workflow.run(TARGET, "--config", "trials=4")
    assert sorted(measured(workflow)) == [(1, 2), (4, 2), (4, 3)]
    assert rows(workflow) == everything | {(4, 2), (4, 3)}


@pytest.mark.slow
def test_a_lost_trial_does_not_hold_up_later_rounds(workflow: WorkflowCopy) -> None:
    """The first trial to be measured fails, and is measured by the next run."""
    script = workflow.path / "scripts" / "measure_cell.py"
    works = script.read_text()
    fails_once = (
        "import sys\nfrom pathlib import Path\n"
        "if not Path('lost').exists():\n    Path('lost').touch()\n    sys.exit('error: it fails')\n"
    )
    script.write_text(fails_once + works)
    assert workflow.snakemake(TARGET).returncode != 0
    assert [trial for trial, _ in measured(workflow)] == [1, 2, 2, 3, 3]
    workflow.run(TARGET)
    assert [trial for trial, _ in measured(workflow)] == [1]
    assert workflow.would_run(TARGET) == Counter()


@pytest.mark.slow
def test_a_large_run_is_refined_and_repeated_after_its_last_round(workflow: WorkflowCopy) -> None:
    workflow.config(repeat_disturbed=1, devices=["cpu", "cuda"], cluster={"check_devices": False})
    workflow.edit("studies/disc_depth", refinement={"bisections": 0, "first_trials": 2, "extra_trials": 0})
    (workflow.path / "disturbed").write_text("2 cpu 1 0")
    jobs = workflow.would_run(TARGET)
    assert (jobs["measure_cell"], jobs["plan_round"], jobs["plan_refinement"]) == (4, 1, 1)
    output = workflow.run(TARGET)
    assert "To measure: 8 trials in 2 rounds, before what refinement adds." in output
    trials = [trial for trial, _ in measured(workflow)]
    assert trials[:8] == [1] * 4 + [2] * 4
    assert trials[8:] == [3] * (len(trials) - 9) + [1]
    assert workflow.would_run(TARGET) == Counter()
    # The same rows are what a run without the limit asks for.
    limit_trials(workflow, MOST_AT_ONCE)
    assert workflow.would_run(TARGET)["measure_cell"] == 0


PEAK = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "snakemake", "--cores", "2", "--dry-run", "--quiet"], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("used", used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


@pytest.mark.slow
def test_the_plan_of_80_000_trials_takes_at_most_60_cpu_seconds_and_500_mb(workflow: WorkflowCopy) -> None:
    limit_trials(workflow, MOST_AT_ONCE)
    workflow.config(studies=["hsf_width"], trials=8)
    axes = {"sizes": [*range(1, 1001)], "batch_sizes": [*range(1, 11)], "protocols": ["resident"], "refinement": None}
    workflow.edit("studies/hsf_width", **axes, claims=[], published=None)
    command = [sys.executable, "-c", PEAK]
    done = subprocess.run(command, cwd=workflow.path, capture_output=True, text=True, check=True)
    assert "To measure: 80,000 trials in 8 rounds and the peak rates." in done.stdout + done.stderr
    _, cpu_s, peak_kib = done.stdout.split()[-3:]
    assert float(cpu_s) < 60
    assert int(peak_kib) * 1024 < 500e6

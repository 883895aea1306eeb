"""Trials of one or two runs on several simulated GPUs of one machine, with the jobs that Snakemake really starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.machine.threads import usable_cores
from processes import PATIENCE_S, wait_for
from workflow_copy import ROOT, WorkflowCopy

pytestmark = pytest.mark.slow

GPUS = 4


@pytest.fixture
def workflow(tmp_path: Path) -> WorkflowCopy:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.pretend(devices=["cpu", "cuda"], cluster={"check_devices": False})
    (workflow.path / "gpus").write_text(str(GPUS))
    workflow.edit("studies/disc_depth", sizes=[2, 3, 4, 5])
    return workflow


def start(workflow: WorkflowCopy, *arguments: str, cores: int = GPUS, gpus: int = GPUS) -> subprocess.Popen[str]:
    """Measure all trials with these numbers of GPUs and cores; runs in the same parent folder share a host."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(workflow.path / "scripts")]),
        "CROSSOVER_LEASES": str(workflow.path.parent / "leases"),
    }
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--resources", f"gpu={gpus}"]
    with (workflow.path / "snakemake.log").open("w") as log:
        return subprocess.Popen(
            [*command, "--until", "measure_cell", *arguments],
            cwd=workflow.path,
            env=environment,
            stdout=log,
            stderr=log,
        )


def finish(run: subprocess.Popen[str], workflow: WorkflowCopy) -> None:
    assert run.wait(PATIENCE_S) == 0, (workflow.path / "snakemake.log").read_text()


def at_once(trials: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """The pairs of trials that ran at the same time."""
    return [
        (first, second)
        for first, second in combinations(trials, 2)
        if first["began"] < second["ended"] and second["began"] < first["ended"]
    ]


def test_four_gpus_measure_four_cells_side_by_side_and_a_cpu_cell_runs_alone(workflow: WorkflowCopy) -> None:
    (workflow.path / "hold").write_text("cuda")
    run = start(workflow)
    wait_for(lambda: len([note for note in workflow.notes() if note["device"] == "cuda"]) == GPUS, "the trials")
    (workflow.path / "hold").unlink()
    finish(run, workflow)
    notes = workflow.notes()
    on_gpus = [note for note in notes if note["device"] == "cuda"]
    assert sorted(note["gpus"] for note in on_gpus) == [f"GPU-{number}" for number in range(GPUS)]
    assert len(at_once(on_gpus)) == GPUS * (GPUS - 1) / 2
    assert len(notes) == 2 * GPUS
    assert beside_cpu_trials(notes) == []
    assert workflow.would_run("--resources", f"gpu={GPUS}", "--until", "measure_cell")["measure_cell"] == 0


def beside_cpu_trials(trials: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [pair for pair in at_once(trials) if "cpu" in (pair[0]["device"], pair[1]["device"])]


def test_two_runs_on_one_host_wait_for_each_other(workflow: WorkflowCopy, tmp_path: Path) -> None:
    """While a CPU trial of the first run is running, the second run starts neither trials nor its dataset."""
    other = WorkflowCopy.copy_of(workflow, tmp_path / "other")
    (workflow.path / "hold").write_text("cpu")
    first = start(workflow, cores=1, gpus=1)
    wait_for(lambda: [note for note in workflow.notes() if note["device"] == "cpu"], "the first run's CPU trial")
    second = start(other, cores=4, gpus=4)

    def said() -> list[str]:
        return [line for log in other.results.rglob("*.log") for line in log.read_text().splitlines() if "wait" in line]

    (line,) = wait_for(said, "the second run to wait")
    assert line.startswith("waiting for a turn on this host, which is used by measure_cell.py (pid ")
    assert other.notes() == []
    assert not list(other.results.glob("datasets/*"))
    (workflow.path / "hold").unlink()
    finish(first, workflow)
    finish(second, other)
    both = workflow.notes() + other.notes()
    assert len(both) == 2 * 2 * GPUS
    assert beside_cpu_trials(both) == []


def test_trials_on_two_gpus_and_on_one_never_share_a_gpu(workflow: WorkflowCopy) -> None:
    """Within a block of the round, those on one GPU come first."""
    finish(start(workflow, "--config", "devices=[cuda,cuda-2]"), workflow)
    notes = sorted(workflow.notes(), key=lambda note: note["began"])
    assert {(note["device"], note["gpus"].count("GPU-")) for note in notes} == {("cuda", 1), ("cuda-2", 2)}
    assert len(notes) == 2 * GPUS
    for first, second in at_once(notes):
        assert {*first["gpus"].split(",")}.isdisjoint(second["gpus"].split(","))
    assert [note["device"] for note in notes] == [*["cuda"] * GPUS, *["cuda-2"] * GPUS]


@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
def test_two_processes_of_the_cpu_have_a_crossover_over_one_and_their_links_are_probed(tmp_path: Path) -> None:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.edit("studies/batch_mlp_training", sizes=[16], batch_sizes=[2, 64], cpu_threads=[1])
    workflow.edit("studies/batch_mlp_training", protocols=["resident", "each"])
    workflow.config(studies=["batch_mlp_training"], devices=["cpu", "cpu-2x1"])
    workflow.run()
    rows = pd.read_parquet(workflow.results / "measurements.parquet")
    assert set(rows["status"]) == {"ok"}
    assert set(zip(rows["protocol"], rows["device"], strict=True)) == {
        *(("resident", side) for side in ("cpu", "cpu-1", "cpu-2x1")),
        *(("each", side) for side in ("cpu-1", "cpu-2x1")),
    }
    crossovers = pd.read_parquet(workflow.results / "crossovers.parquet")
    pairs = crossovers.loc[crossovers["pair"] == "gpus", ["protocol", "baseline", "contender"]]
    assert sorted(pairs.values.tolist()) == [[name, "cpu-1", "cpu-2x1"] for name in ("each", "resident")]
    roofs = pd.read_parquet(workflow.results / "roofs.parquet")
    assert set(roofs.loc[roofs["device"] == "cpu-2x1", "roof"]) == {"all_reduce"}
    answers = pd.read_parquet(workflow.results / "answers.parquet")
    sentences = answers.loc[answers["kind"] == "communication", "sentence"]
    assert sentences.str.contains(r"of a step on 2 CPU processes at batch \d+ and [\d.]+ % at batch 64").all()

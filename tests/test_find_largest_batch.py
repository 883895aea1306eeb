"""The search for the largest batch, run from the command line on the CPU under a memory limit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from planting import plant
from trials import run_script, write_points

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel must keep a limit on memory")

HUNGRY = """
import torch
from torch import nn
from crossover.measurement.step.tasks import InferenceTask

SIZE_NAME = "MiB a row"
SIZE_RANGE = (1, 99)
DATASET = "disc"
PROTOCOLS = ("resident",)


def build_model(size):
    return nn.Linear(2, 2)


class Hungry(InferenceTask):
    def __init__(self, cell, data, arithmetic):
        super().__init__(build_model(cell.size), arithmetic, (data["features"],))
        self.cell = cell

    def next_inputs(self):
        return (self.resident[0].narrow(0, 0, self.cell.batch_size),)

    def forward(self, model, features):
        return (features.new_empty(len(features), self.cell.size * 2**18),)


def build(cell, data, arithmetic):
    return Hungry(cell, data, arithmetic)
"""


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the scripts with a workload that takes a fixed number of MiB per row, and a dataset of ten rows."""
    folder = tmp_path_factory.mktemp("workflow")
    workloads = plant(folder).parent / "crossover" / "measurement" / "workloads"
    (workloads / "hungry.py").write_text(HUNGRY)
    write_points(folder / "points.safetensors", rows=10)
    return folder


def search(workflow: Path, output: Path, workload: str, size: int, memory_limit_gb: float) -> dict[str, Any]:
    limits = {"limit": 4096, "memory_limit_gb": memory_limit_gb}  # a faulty search must not use up the machine's memory
    job = {
        "cell": {"workload": workload, "size": size},
        "search": limits,
        "isolation": "server",
    }
    options = [json.dumps(job), "--device=cpu", "--cpu-threads=2", f"--dataset={workflow / 'points.safetensors'}"]
    done = run_script([*options, f"--output={output}"], script=workflow / "scripts" / "find_largest_batch.py")
    assert done.returncode == 0, done.stderr
    assert list(output.parent.iterdir()) == [output]
    return dict(json.loads(output.read_text()))


def statuses(result: dict[str, Any]) -> list[tuple[int, str]]:
    return [(attempt["batch_size"], attempt["status"]) for attempt in result["tries"]]


@pytest.mark.slow
def test_the_largest_batch_agrees_with_arithmetic(workflow: Path, tmp_path: Path) -> None:
    """1 GiB holds 146 rows of 7 MiB, with 2 MiB left; up to 4 MiB of other memory are tolerated."""
    result = search(workflow, tmp_path / "found.json", "hungry", 7, 2**30 / 1e9)
    largest = result["largest"]
    assert result["status"] == "ok"
    assert 146 - 4 / 7 <= largest <= 146
    assert result["smallest_failing"] == largest + 1
    assert result["memory_limit_bytes"] == 2**30
    assert statuses(result)[0] == (64, "ok")
    assert statuses(result)[-2:] == [(largest, "ok")] * 2
    assert {status for size, status in statuses(result) if size > largest} == {"oom"}
    assert {status for size, status in statuses(result) if size <= largest} == {"ok"}
    failed = next(attempt for attempt in result["tries"] if attempt["status"] == "oom")
    assert "can't allocate memory" in failed["reason"]
    rate = result["timed_batches"] * largest / result["timed_s"]
    assert result["throughput_samples_per_s"] == pytest.approx(rate)
    assert 3 <= result["timed_batches"] <= 100
    assert result["throughput_reason"] is None

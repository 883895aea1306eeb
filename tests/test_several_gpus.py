"""Several GPUs of one machine, pretended, and the trials on them: the workflow's jobs as Snakemake runs them here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from house import ROOT, House
from processes import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

GPUS = 4


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path / "house")
    house.pretend(devices=["cpu", "cuda"], cluster={"check_devices": False})
    (house.path / "gpus").write_text(str(GPUS))
    house.edit("studies/disc_depth", sizes=[2, 3, 4, 5])
    return house


def start(house: House, *arguments: str) -> subprocess.Popen[str]:
    """Measure all trials with four GPUs and four cores."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(house.path / "scripts")]),
        "CROSSOVER_LEASES": str(house.path / "leases"),
    }
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, "-m", "snakemake", "--cores", str(GPUS), "--resources", f"gpu={GPUS}"]
    with (house.path / "snakemake.log").open("w") as log:
        return subprocess.Popen(
            [*command, "--until", "measure_cell", *arguments], cwd=house.path, env=environment, stdout=log, stderr=log
        )


def finish(run: subprocess.Popen[str], house: House) -> None:
    assert run.wait(PATIENCE_S) == 0, (house.path / "snakemake.log").read_text()


def at_once(trials: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    """The pairs of trials that ran at the same time."""
    return [
        (one, other)
        for one, other in combinations(trials, 2)
        if one["began"] < other["ended"] and other["began"] < one["ended"]
    ]


def test_four_gpus_run_four_cells_at_once_each_its_own_and_a_cpu_cell_runs_alone(house: House) -> None:
    (house.path / "hold").write_text("cuda")
    run = start(house)
    wait_for(lambda: len([note for note in house.notes() if note["device"] == "cuda"]) == GPUS, "the trials")
    (house.path / "hold").unlink()
    finish(run, house)
    found = house.notes()
    on_gpus = [note for note in found if note["device"] == "cuda"]
    assert sorted(note["gpus"] for note in on_gpus) == [f"GPU-{number}" for number in range(GPUS)]
    assert len(at_once(on_gpus)) == GPUS * (GPUS - 1) / 2
    assert len(found) == 2 * GPUS
    assert [pair for pair in at_once(found) if "cpu" in (pair[0]["device"], pair[1]["device"])] == []


def test_not_side_by_side_cells_run_one_at_a_time_and_what_is_there_is_not_measured_again(house: House) -> None:
    finish(start(house, "--config", "cluster={side_by_side: false, check_devices: false}"), house)
    found = house.notes()
    assert len(found) == 2 * GPUS
    assert at_once(found) == []
    assert house.would_run("--resources", f"gpu={GPUS}", "--until", "measure_cell")["measure_cell"] == 0

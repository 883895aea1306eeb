"""Several machines in one report: runs that are merged, and classes of a cluster's nodes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pandas as pd
import pytest

from house import House

CELL = "results/cells/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-3"
CLASSES = {
    "a100": {"slurm_partition": "gpu-a", "gpu_model": "a100", "cores": 6},
    "h200": {"slurm_partition": "gpu-h", "gpu_model": "h200", "constraint": "nvme", "devices": ["cuda"]},
}


@pytest.fixture
def fresh(tmp_path: Path) -> House:
    house = House(tmp_path / "house")
    house.config(studies=["disc_depth"])
    return house


@pytest.mark.slow
def test_two_runs_become_one_report(fresh: House) -> None:
    """The second has the rows of the first, but of another host, whose CPU takes twice as long."""
    assert fresh.snakemake("--config", "results=first").returncode == 0
    rows = pd.read_parquet(fresh.path / "first" / "measurements.parquet")
    other = rows.assign(
        hostname="slow", device_name="Brand C9", cpu_model="Brand C9", step_time_s=2 * rows["step_time_s"]
    )
    (fresh.path / "second").mkdir()
    other.to_parquet(fresh.path / "second" / "measurements.parquet")
    wanted = ["merge", "--config", "merge={quick: first, slow: second}"]
    done = fresh.snakemake(*wanted)
    assert done.returncode == 0, done.stderr

    merged = fresh.path / "results" / "merged"
    cells = pd.read_parquet(merged / "cells.parquet").set_index(["size", "machine"])["step_time_s"]
    for size in (2, 3):
        assert cells[size, "slow"] == pytest.approx(2 * cells[size, "quick"])
    crossovers = pd.read_parquet(merged / "crossovers.parquet").query("pair == 'machine'")
    assert crossovers[["baseline_machine", "machine", "status"]].to_numpy().tolist() == [
        ["quick", "slow", "above_range"]
    ]
    page = (merged / "report.html").read_text()
    assert "This report holds 2 machines, each as it was measured: quick, slow." in page
    assert "CPU (Brand C9) of slow" in page
    # Where the numbers of each run come from, as far as its folder says so.
    of_first = json.loads((fresh.path / "first" / "provenance.json").read_text())
    told = json.loads((merged / "provenance.json").read_text())["runs"]
    assert [(run["name"], run["provenance"], run["doubt"]) for run in told] == [
        ("quick", of_first, None),
        ("slow", None, "its folder has no provenance.json, which a finished run's has"),
    ]
    assert "Config as used in <bdi>quick</bdi>" in page
    summary = (merged / "summary.md").read_text()
    assert f"- To reproduce quick: `{' && '.join(of_first['rerun'])}`" in summary
    assert "- To reproduce slow: not known" in summary
    figure = (merged / "figures" / "disc_depth" / "times.svg").read_text()
    assert "slow, CPU: Brand C9" in figure
    assert not (merged / "cells").exists()
    assert fresh.would_run(*wanted) == {}
    # What was merged stays as it was, and so does a plain run beside it.
    assert set(pd.read_parquet(fresh.path / "first" / "cells.parquet")["machine"]) == {"here"}
    assert json.loads((fresh.path / "first" / "provenance.json").read_text()) == of_first
    assert '<th scope="col">machine</th>' in page
    assert '<th scope="col">machine</th>' not in (fresh.path / "first" / "report.html").read_text()
    assert fresh.would_run("--config", "results=first") == {}


def test_every_class_measures_every_cell_and_here_there_is_none(fresh: House) -> None:
    fresh.config(hardware={"a": {}, "b": {}})
    assert fresh.would_run()["measure_cell"] == 4  # two sizes on the CPU of two classes
    done = fresh.snakemake()
    assert done.returncode != 0
    assert "error: hardware: a, b are classes of a cluster's nodes, but the jobs would run here" in done.stderr


@pytest.mark.slow
def test_a_partial_report_of_classes_needs_no_cluster(fresh: House) -> None:
    fresh.config(hardware={"a": {}, "b": {}})
    done = fresh.snakemake("--", "partial_report")  # which measures nothing
    assert done.returncode == 0, done.stderr
    assert "Partial: 0 of 4 trials have finished" in done.stderr


def test_a_row_of_a_class_says_so(fresh: House) -> None:
    """The command of a class's job, run by hand."""
    fresh.config(hardware={"a100": {}})
    done = fresh.snakemake("--dry-run", "--printshellcmds", f"{CELL}/a100/cpu/trial-1.parquet")
    assert "--machine=a100" in done.stdout + done.stderr, done.stderr
    assert "on cpu of a100" in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the scripts that stand for Slurm need a shell")
def test_the_resources_of_a_class_reach_slurm(fresh: House, tmp_path: Path) -> None:
    """An sbatch that writes down what it is asked for and refuses; the profile's own partitions do not count."""
    dataset = fresh.path / "results" / "datasets" / "disc.safetensors"
    dataset.parent.mkdir(parents=True)
    dataset.touch()
    fresh.config(hardware=CLASSES, devices=["cpu", "cuda"])
    calls, tools = tmp_path / "calls", tmp_path / "bin"
    tools.mkdir()
    # The others come with every sbatch; one that is installed here must not be asked.
    others = ("squeue", "sacct", "sacctmgr", "sshare", "scontrol", "scancel")
    says = {"sbatch": f'echo "$*" >> {calls}\nexit 1', "sinfo": "echo 'cpu 8 gpu:2'", **dict.fromkeys(others, "exit 0")}
    for name, script in says.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    rows = [f"{CELL}/{place}/trial-1.parquet" for place in ("a100/cpu", "a100/cuda", "h200/cuda")]
    fresh.snakemake(
        *("--cores", "8", "--profile", "profiles/slurm", "--keep-going", "--retries", "0", *rows),
        environment={**os.environ, "PATH": os.pathsep.join([str(tools), os.environ["PATH"]])},
    )
    asked = calls.read_text().splitlines()
    cpu, a100, h200 = (
        next(call.partition("--wrap")[0].split() for call in asked if f"_eager_3_{place}_1" in call)
        for place in ("a100_cpu", "a100_cuda", "h200_cuda")
    )
    for call, partition in ((cpu, "gpu-a"), (a100, "gpu-a"), (h200, "gpu-h")):
        assert call[call.index("-p") + 1] == partition
    assert not any(part.startswith("--gpus") for part in cpu)
    assert "--gpus=a100:1" in a100
    assert "-C" not in a100
    assert "--gpus=h200:1" in h200
    assert h200[h200.index("-C") + 1] == "nvme"
    assert "--cpus-per-task=6" in cpu

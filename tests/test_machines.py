"""Clusters and classes of nodes, with scripts in place of Slurm's commands; no job runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflow_copy import WorkflowCopy

CELL = "results/cells/disc_depth/disc_mlp/plain/resident/batch-100/fp32/eager/size-3"
CLASSES = {
    "a100": {"slurm_partition": "gpu-a", "gpu_model": "a100", "cores": 6},
    "h200": {"slurm_partition": "gpu-h", "gpu_model": "h200", "constraint": "nvme", "devices": ["cuda"]},
}
NODES = "echo 'cpu 8 (null)'; echo 'gpu 16 gpu:2'"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the scripts that stand for Slurm need a shell"),
]


class OnSlurm(WorkflowCopy):
    """A workflow with a fake sbatch that records its options and then fails."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.config(studies=["disc_depth"], devices="auto")
        self.sinfo(NODES)
        self.script("sbatch", 'echo "$*" >> calls\nexit 1')
        for name in ("squeue", "sacct", "sacctmgr", "sshare", "scontrol", "scancel"):
            self.script(name, "exit 0")

    def script(self, name: str, text: str) -> None:
        tool = self.path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)

    def sinfo(self, answer: str) -> None:
        self.script("sinfo", answer)

    def on_slurm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.path / "bin"), os.environ["PATH"]])
        return self.snakemake("--profile", "profiles/slurm", *arguments, environment={**os.environ, "PATH": path})

    def asked(self, *places: str) -> list[list[str]]:
        """The options of sbatch for trials of size 3, by machine and device."""
        self.run("results/datasets/disc.safetensors", "--config", "devices=[cpu]", "cluster={}")
        rows = [f"{CELL}/{place}/trial-1.parquet" for place in places]
        self.on_slurm("--cores", "8", "--keep-going", "--retries", "0", *rows)
        calls = [call.partition("--wrap")[0] for call in (self.path / "calls").read_text().splitlines()]
        names = [f"_eager_3_{place.replace('/', '_')}_1_/" for place in places]
        return [next(call.split() for call in calls if name in call) for name in names]


@pytest.fixture
def workflow(tmp_path: Path) -> OnSlurm:
    return OnSlurm(tmp_path / "workflow")


def test_jobs_ask_for_the_nodes_of_their_device(workflow: OnSlurm) -> None:
    cpu, cuda = workflow.asked("cpu", "cuda")
    assert (cpu[cpu.index("-p") + 1], cuda[cuda.index("-p") + 1]) == ("cpu", "gpu")
    assert {"--exclusive", "--cpus-per-task=8"} <= set(cpu)
    assert {"--gpus=1", "--ntasks-per-gpu=1", "--cpus-per-task=8"} <= set(cuda)
    assert "--exclusive" not in cuda


def test_the_resources_of_a_class_replace_those_of_the_profile(workflow: OnSlurm) -> None:
    workflow.config(cluster={"classes": CLASSES}, devices=["cpu", "cuda"])
    cpu, a100, h200 = workflow.asked("a100/cpu", "a100/cuda", "h200/cuda")
    assert [call[call.index("-p") + 1] for call in (cpu, a100, h200)] == ["gpu-a", "gpu-a", "gpu-h"]
    assert not any(part.startswith("--gpus") for part in cpu)
    assert "--cpus-per-task=6" in cpu
    assert "--gpus=a100:1" in a100
    assert "-C" not in a100
    assert "--gpus=h200:1" in h200
    assert h200[h200.index("-C") + 1] == "nvme"


def test_nodes_are_described_by_slurm_unless_the_config_does(workflow: OnSlurm) -> None:
    planned = workflow.on_slurm("--dry-run").stdout
    assert "size 2 on cuda" in planned
    planned = workflow.on_slurm("--dry-run", "--config", "devices=[cpu]").stdout
    assert "size 2 on cpu" in planned
    assert "on cuda" not in planned
    workflow.sinfo("exit 1")
    done = workflow.on_slurm()
    assert "error: config/config.yaml: devices: 'auto' takes the devices that Slurm reports" in done.stderr
    assert not workflow.results.exists()


def test_every_class_measures_every_cell_but_not_on_this_machine(workflow: OnSlurm) -> None:
    workflow.config(cluster={"classes": {"a": {}, "b": {}}}, devices=["cpu"])
    assert workflow.would_run()["measure_cell"] == 4  # two sizes on the CPU of two classes
    done = workflow.snakemake()
    assert done.returncode != 0
    assert "error: cluster.classes: a, b are classes of a cluster's nodes, but the jobs would run here" in done.stderr

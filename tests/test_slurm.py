"""The workflow on a real Slurm with simulated GPUs, through the shipped profile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from processes import PATIENCE_S, wait_for
from slurm_cluster import Cluster, lacks, running
from workflow_copy import WorkflowCopy

pytestmark = pytest.mark.slow

IMPATIENT = """
import sys
from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, longer: None)
sys.exit(main())
"""
"""Snakemake, which asks for the state of jobs every second; it would wait 10 s longer each time that none has ended."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reason = lacks()
    if reason and "CI" in os.environ:
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture
def workflow(tmp_path: Path, cluster: Cluster) -> Iterator[WorkflowCopy]:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.pretend()
    yield workflow
    (workflow.path / "hold").unlink(missing_ok=True)
    cluster.empty()


def start(workflow: WorkflowCopy, *arguments: str, devices: str = "cuda") -> subprocess.Popen[str]:
    """Start Snakemake with the shipped profile; only settings that would slow the test down are replaced."""
    command = [sys.executable, "-c", IMPATIENT, "--profile", "profiles/slurm", "--latency-wait", "20"]
    command += ["--config", f"devices=[{devices}]"]
    with (workflow.path / "snakemake.log").open("w") as log:
        options = {"cwd": workflow.path, "stdout": log, "stderr": log, "text": True}
        return subprocess.Popen([*command, *arguments], preexec_fn=hear_interruptions, **options)


def hear_interruptions() -> None:
    """Restore SIGINT, which processes started in a shell's background ignore, as do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def printed(workflow: WorkflowCopy) -> str:
    return (workflow.path / "snakemake.log").read_text()


def finish(workflow: WorkflowCopy, *arguments: str, devices: str = "cuda", status: int = 0) -> None:
    assert start(workflow, *arguments, devices=devices).wait(PATIENCE_S) == status, printed(workflow)


def rows(workflow: WorkflowCopy) -> pd.DataFrame:
    files = sorted((workflow.path / "results" / "cells").rglob("trial-*.parquet"))
    return pd.concat([pd.read_parquet(path) for path in files]) if files else pd.DataFrame({"started_at": []})


def test_the_main_job_ends_in_a_report(tmp_path: Path, cluster: Cluster) -> None:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.config(studies=["disc_depth"])
    workflow.edit("studies/disc_depth", sizes=[2], figures=["times"])
    finish(workflow, devices="cpu")
    assert (workflow.path / "results" / "report.html").is_file()
    measured = rows(workflow)
    assert list(measured["status"]) == ["ok"]
    assert set(measured["threads"]) == {cluster.cores}
    jobs = {job["JobId"]: job for job in cluster.jobs()}
    logs = [path.read_text() for path in (workflow.path / "results" / "logs" / "measure_cell").rglob("*.log")]
    (named,) = (re.match(r"SLURM_JOB_ID=(\d+) on (\S+)", log) for log in logs)
    assert named is not None, logs
    assert named[2] == os.uname().nodename
    job = jobs[named[1]]
    # --exclusive is OverSubscribe=NO.
    assert (job["Partition"], job["OverSubscribe"], job["NumCPUs"]) == ("cpu", "NO", str(cluster.cores))
    of_one_run = {job["JobName"] for job in jobs.values()}
    assert len(of_one_run) == 1
    assert of_one_run.pop().startswith("crossover_")


def test_gpu_cells_run_side_by_side_and_a_second_run_measures_cancelled_jobs(
    workflow: WorkflowCopy, cluster: Cluster
) -> None:
    workflow.edit("studies/disc_depth", sizes=[2, 3, 4])
    (workflow.path / "hold").write_text("cuda")
    run = start(workflow, "--until", "measure_cell", "--retries", "0")
    wait_for(lambda: len(workflow.notes()) == 2, "two trials")
    cancelled, late = (note["job"] for note in workflow.notes())
    cluster.limit(late, 1)
    jobs = {job["JobId"]: job for job in cluster.jobs()}
    assert {note["gpus"] for note in workflow.notes()} == {"0", "1"}
    for note in workflow.notes():
        job = jobs[note["job"]]
        assert job["Partition"] == "gpu"
        assert job["NumTasks"] == "1"
        assert job["TresPerJob"] == "gres:gpu:1"
        assert note["cpus"] == max(1, cluster.cores // 2)

    cluster.cancel(cancelled)
    wait_for(lambda: len(workflow.notes()) == 3, "the third trial")
    wait_for(lambda: late not in cluster.active(), "the time limit")
    (workflow.path / "hold").unlink()
    assert run.wait(PATIENCE_S) != 0
    states = {job["JobId"]: job["JobState"] for job in cluster.jobs()}
    assert (states[cancelled], states[late]) == ("CANCELLED", "TIMEOUT")
    first = rows(workflow)
    assert len(first) == 1

    cluster.update_node(State="DRAIN", Reason="test")
    run = start(workflow, "--until", "measure_cell")
    wait_for(lambda: printed(workflow).count("has been submitted") == 2, "two jobs in the queue")
    run.send_signal(signal.SIGINT)
    assert run.wait(PATIENCE_S) != 0
    wait_for(lambda: not cluster.active(), "Snakemake to cancel its jobs")
    cluster.update_node(State="RESUME")

    finish(workflow, "--until", "measure_cell")
    second = rows(workflow)
    assert sorted(second["size"]) == [2, 3, 4]
    assert set(first["started_at"]) < set(second["started_at"])


def test_a_cell_on_two_gpus_is_one_job_with_both_and_their_cores(workflow: WorkflowCopy, cluster: Cluster) -> None:
    workflow.config(studies=["several_gpus_width"])
    workflow.edit("studies/several_gpus_width", sizes=[128])
    finish(workflow, "--until", "measure_cell", devices="cuda-2")
    (note,) = workflow.notes()
    (job,) = [job for job in cluster.jobs() if job["JobId"] == note["job"]]
    assert (note["gpus"], note["cpus"]) == ("0,1", cluster.cores)
    assert (job["NumTasks"], job["TresPerJob"]) == ("1", "gres:gpu:2")

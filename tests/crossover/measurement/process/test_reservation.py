"""Reservations on a fake machine with 16 CPUs and two GPUs, and in a Slurm job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from crossover.config.models import Model
from crossover.errors import UserError
from crossover.machine import threads
from crossover.measurement.process import reservation
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.process.reservation import ask_slurm, check_whole_node, choose_isolation, reserve
from crossover.measurement.ranks.group import job_of_rank
from fake_nvml import FakeGpu, FakeNvml
from trials import CELL, trial_job

NEAR = tuple(range(8)), tuple(range(8, 16))


def job_on(device: str, cpu_threads: int | str = "auto") -> TrialJob:
    return trial_job("", Path("row"), cell=replace(CELL, device=device), cpu_threads=cpu_threads)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(
        sys.modules, "pynvml", FakeNvml(*(FakeGpu(f"GPU-{n}", near=near) for n, near in enumerate(NEAR)))
    )
    monkeypatch.setenv("CROSSOVER_LEASES", str(tmp_path / "leases"))
    for name in (*threads.THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "SLURM_CPUS_PER_TASK"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(threads, "physical_cores", lambda cpus, _root: len(cpus))
    monkeypatch.setattr(threads, "usable_cpus", lambda: set(range(16)))
    monkeypatch.setattr(threads, "cgroup_quota", lambda _root: None)


@pytest.mark.usefixtures("machine")
def test_a_gpu_is_reserved_with_its_cpus_and_as_many_threads() -> None:
    before = os.sched_getaffinity(0)
    with reserve(job_on("cuda")) as first:
        assert (first.uuid, first.cpus, first.threads) == ("GPU-0", list(NEAR[0]), 8)
        assert os.environ["OMP_NUM_THREADS"] == "8"
        os.environ.pop("CUDA_VISIBLE_DEVICES")  # so that the next lease is that of another command
        with reserve(job_on("cuda", 3)) as second:
            assert (second.uuid, second.cpus, second.threads) == ("GPU-1", list(NEAR[1]), 3)
    assert os.sched_getaffinity(0) == before


@pytest.mark.usefixtures("machine")
def test_gpus_are_hidden_from_a_trial_on_the_cpu_unless_its_model_may_ask_for_them() -> None:
    own = job_on("cpu")
    with reserve(replace(own, cell=replace(own.cell, workload="own", model=Model("my_net.py", "build")))):
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with reserve(own):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.usefixtures("machine")
def test_each_of_several_gpus_is_reserved_with_its_cpus() -> None:
    with reserve(job_on("cuda-2")) as job:
        assert (job.rank_uuids, job.rank_cpus) == (["GPU-0", "GPU-1"], [list(cpus) for cpus in NEAR])
        assert (job.uuid, job.cpus, job.threads) == ("GPU-0", list(range(16)), 8)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"
        own = job_of_rank(replace(job, rank_cpus=None), 1)
        assert (own.uuid, os.environ["CUDA_VISIBLE_DEVICES"]) == ("GPU-1", "GPU-1,GPU-0")


@pytest.mark.usefixtures("machine")
def test_each_of_several_processes_has_cores_of_its_own_if_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores_of", lambda cpus: [[cpu, cpu + 8] for cpu in sorted(cpus) if cpu < 8])
    with reserve(job_on("cpu-2x3")) as job:
        assert job.rank_cpus == [[0, 1, 2, 8, 9, 10], [3, 4, 5, 11, 12, 13]]
        assert (job.rank_uuids, job.threads) == (None, 3)
    with reserve(job_on("cpu-3x3")) as job:
        assert (job.rank_cpus, job.threads) == (None, 3)
    with reserve(job_on("cpu-3")) as job:
        assert (job.rank_cpus, job.cpus, job.threads) == (None, None, 3)


@pytest.mark.parametrize(
    ("wanted", "environment", "isolation"),
    [
        ("auto", {}, "server"),
        ("auto", {"SLURM_JOB_ID": "7"}, "process"),
        ("auto", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "server"),  # any container of a cluster has it
        ("server", {"SLURM_JOB_ID": "7"}, "server"),
    ],
)
def test_auto_means_a_server_outside_of_batch_jobs(
    monkeypatch: pytest.MonkeyPatch, wanted: str, environment: dict[str, str], isolation: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "environ", environment)
    assert choose_isolation(wanted) == isolation


Check = Callable[..., None]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check a Slurm job on a node of four cores with two threads each: CPUs n and n + 4 are siblings."""
    for cpu in range(8):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(reservation, "physical_cores", partial(threads.physical_cores, root=tmp_path))
    monkeypatch.setattr(reservation, "usable_cores", partial(threads.usable_cores, root=tmp_path))

    def whole_node(of_job: int, requested: str, cpus: Collection[int], nodes: int = 1, job: str = "7") -> None:
        answer = f"JobId=7 JobState=RUNNING NumNodes={nodes} NumCPUs={of_job} NumTasks=1 CPUs/Task={requested}\n"
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", requested)
        monkeypatch.setattr(reservation, "ask_slurm", lambda job: answer if job == "7" else "")
        monkeypatch.setattr(reservation, "usable_cpus", lambda: set(cpus))
        check_whole_node()

    return whole_node


@pytest.mark.parametrize(
    ("of_job", "requested", "cpus"),
    [
        (8, "4", {0, 1, 4, 5}),  # the number of cores, although Slurm counts threads
        (8, "", {0, 4}),  # no number was requested
        (4, "2", {0, 1, 4, 5}),  # Slurm counts cores
    ],
)
def test_a_part_of_the_node_is_rejected(check: Check, of_job: int, requested: str, cpus: Collection[int]) -> None:
    of_step = requested or str(len(cpus))
    with pytest.raises(UserError, match=f"it has {of_job} CPUs of its node, but its step may use only {of_step}"):
        check(of_job, requested, cpus)


def test_all_cores_of_the_job_are_accepted(check: Check) -> None:
    check(4, "4", range(8))  # Slurm counts cores
    check(8, "4", range(4))  # a thread of each core: --hint=nomultithread
    check(4, "3", {0, 1, 4, 5})  # rounded up to whole cores


def test_nothing_is_checked_outside_of_a_job_on_one_node(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    check(16, "2", {0, 4}, nodes=2)
    check(8, "2", {0, 4}, job="8")
    check(8, "2", {0, 4}, job="")
    monkeypatch.setenv("PATH", "")
    assert ask_slurm("7") == ""


@pytest.mark.parametrize(
    ("device", "cpu_threads", "expected"),
    [
        ("cpu", "auto", True),
        ("cpu", 4, False),
        ("cpu-half", 4, True),
        ("cuda", "auto", False),
    ],
)
def test_the_node_is_checked_before_a_cpu_is_timed_on_all_cores(
    monkeypatch: pytest.MonkeyPatch, device: str, cpu_threads: int | str, expected: bool
) -> None:
    def ending(text: str) -> Callable[..., None]:
        def end(*_: object, **__: object) -> None:
            raise UserError(text)

        return end

    monkeypatch.setattr(reservation, "check_whole_node", ending("checked"))
    monkeypatch.setattr(reservation, "host_turn", ending("not checked"))
    with (
        pytest.raises(UserError, match="^checked" if expected else "not checked"),
        reserve(job_on(device, cpu_threads)),
    ):
        pass

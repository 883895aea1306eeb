from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from crossover.errors import UserError
from crossover.measurement.host.whole_node import ask_slurm, check_whole_node, takes_all_cores
from crossover.measurement.process import holding as module
from crossover.measurement.process.holding import holding


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Four cores of two threads each: CPU n and n + 4 are siblings."""
    for cpu in range(8):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    return tmp_path


def check(node: Path, of_job: int, asked: str, cpus: Collection[int], nodes: int = 1) -> None:
    environment = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": asked}
    answer = f"JobId=7 JobState=RUNNING NumNodes={nodes} NumCPUs={of_job} NumTasks=1 CPUs/Task={asked}\n"
    check_whole_node(environment, cpus, 8, node, ask=lambda job: answer if job == "7" else "")


@pytest.mark.parametrize(
    ("of_job", "asked", "cpus"),
    [
        (8, "4", {0, 1, 4, 5}),  # the number of cores, where Slurm counts their threads
        (8, "", {0, 4}),  # nothing was asked for
        (8, "2", {0, 4}),
        (4, "2", {0, 1, 4, 5}),  # Slurm counts cores
    ],
)
def test_a_part_of_the_node_is_refused(node: Path, of_job: int, asked: str, cpus: Collection[int]) -> None:
    with pytest.raises(UserError) as refused:
        check(node, of_job, asked, cpus)
    of_step = asked or str(len(cpus))
    assert f"Slurm job 7: it has {of_job} CPUs of its node, but its step may use {of_step}" in str(refused.value)
    assert f"ask for {of_job}, by hardware.<class>.cores" in str(refused.value)


@pytest.mark.parametrize(
    ("of_job", "asked", "cpus"),
    [
        (8, "8", range(8)),
        (4, "4", range(8)),  # Slurm counts cores
        (8, "4", range(4)),  # a thread of each core: --hint=nomultithread
        (4, "3", {0, 1, 4, 5}),  # rounded up to whole cores
        (2, "2", {0, 4}),  # a node shared with other jobs
    ],
)
def test_all_cores_of_the_job_are_enough(node: Path, of_job: int, asked: str, cpus: Collection[int]) -> None:
    check(node, of_job, asked, cpus)


def test_where_slurm_says_nothing_of_one_node_nothing_is_checked(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(node, 16, "2", {0, 4}, nodes=2)
    check_whole_node({"SLURM_JOB_ID": "8", "SLURM_CPUS_PER_TASK": "2"}, {0, 4}, 8, node, ask=lambda _: "")
    check_whole_node({}, {0, 4}, 8, node, ask=lambda _: "NumNodes=1 NumCPUs=8")
    monkeypatch.setenv("PATH", "")
    assert ask_slurm("7") == ""


@pytest.mark.parametrize(
    ("device", "cpu_threads", "expected"),
    [
        ("cpu", "auto", True),
        ("cpu", 4, False),
        ("cpu-half", 4, True),
        ("cpu-1", "auto", False),
        ("cuda", "auto", False),
    ],
)
def test_what_is_timed_on_all_cores(device: str, cpu_threads: int | str, expected: bool) -> None:
    assert takes_all_cores(device, cpu_threads) == expected


def test_what_measures_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise UserError("a part")

    monkeypatch.setattr(module, "check_whole_node", refuse)
    with pytest.raises(UserError, match="a part"), holding("cpu", "auto", ""):
        pass

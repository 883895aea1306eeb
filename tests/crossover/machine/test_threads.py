from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossover.machine.kernel import cgroup_quota
from crossover.machine.threads import (
    THREAD_VARIABLES,
    cores_of,
    export_threads,
    lacking_cores,
    physical_cores,
    threads_for,
    usable_cores,
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Four cores of two threads each: CPU n and n + 4 are siblings."""
    for cpu in range(8):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user/job\n")
    (tmp_path / "sys/fs/cgroup/user/job").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("cpus", "cores"), [(set(range(8)), 4), ({0, 4}, 1), ({0, 1, 2}, 3), ({3}, 1), ({0, 1, 4, 5}, 2)]
)
def test_siblings_count_once(machine: Path, cpus: set[int], cores: int) -> None:
    assert physical_cores(cpus, machine) == cores
    assert usable_cores(cpus, {}, machine) == cores


def test_a_quota_of_the_control_group_limits(machine: Path) -> None:
    (machine / "sys/fs/cgroup/user/job/cpu.max").write_text("max 100000\n")
    assert cgroup_quota(machine) is None
    (machine / "sys/fs/cgroup/user/cpu.max").write_text("250000 100000\n")
    assert cgroup_quota(machine) == 2.5
    assert usable_cores(range(8), {}, machine) == 2


def test_a_quota_under_one_core_leaves_one_thread(machine: Path) -> None:
    (machine / "sys/fs/cgroup/user/job/cpu.max").write_text("50000 100000\n")
    assert usable_cores(range(8), {}, machine) == 1


def test_the_older_control_groups_limit_too(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("5:cpu,cpuacct:/job\n3:memory:/job\n")
    group = machine / "sys/fs/cgroup/cpu/job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (group / "cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup_quota(machine) is None
    (group / "cpu.cfs_quota_us").write_text("300000\n")
    assert cgroup_quota(machine) == 3


def test_a_slurm_allocation_limits(machine: Path) -> None:
    assert usable_cores(range(8), {"SLURM_CPUS_PER_TASK": "3"}, machine) == 3
    assert usable_cores(range(8), {"SLURM_CPUS_PER_TASK": "16"}, machine) == 4


def test_who_shares_a_limit_gets_a_part_of_it(machine: Path) -> None:
    (machine / "sys/fs/cgroup/user/job/cpu.max").write_text("350000 100000\n")
    assert usable_cores(range(8), {}, machine, sharers=2) == 1
    assert usable_cores(range(8), {}, machine, sharers=4) == 1
    assert usable_cores(range(8), {"SLURM_CPUS_PER_TASK": "2"}, machine, sharers=1) == 2
    assert usable_cores(range(8), {"SLURM_CPUS_PER_TASK": "2"}, machine, sharers=2) == 1


def test_cores_come_in_the_order_of_their_numbers(machine: Path, tmp_path: Path) -> None:
    assert cores_of([7, 4, 2, 1, 0], machine) == [[0, 4], [1], [2], [7]]
    assert cores_of([2, 1], tmp_path / "no topology") == [[1], [2]]


def test_the_thread_limit_that_snakemake_exports_does_not_count(machine: Path) -> None:
    assert usable_cores(range(8), {"OMP_NUM_THREADS": "1"}, machine) == 4


def test_without_a_topology_the_count_is_at_least_one(tmp_path: Path) -> None:
    assert 1 <= physical_cores({0}, tmp_path) <= 1


def test_the_thread_variables_are_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    export_threads(7)
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"7"}


@pytest.mark.parametrize(
    ("device", "cpu_threads", "threads"),
    [
        ("cpu", "auto", 16),
        ("cpu", 4, 4),
        ("cuda", "auto", 16),
        ("cuda", 4, 4),
        ("cpu-1", "auto", 1),
        ("cpu-1", 4, 1),
        ("cpu-half", "auto", 8),
        ("cpu-half", 4, 8),
        ("cpu-12", "auto", 12),
        ("cpu-64", "auto", 64),
    ],
)
def test_a_cpu_side_has_threads_of_its_own(device: str, cpu_threads: int | str, threads: int) -> None:
    assert threads_for(device, cpu_threads, 16) == threads


@pytest.mark.parametrize(("cores", "half"), [(1, 1), (2, 1), (3, 1), (4, 2), (7, 3)])
def test_half_is_rounded_down_and_at_least_one(cores: int, half: int) -> None:
    assert threads_for("cpu-half", "auto", cores) == half


def test_a_side_may_ask_for_no_more_cores_than_there_are() -> None:
    words = "cpu-3 needs 3 physical cores, and this job may use 2: give it more, or leave the side out"
    assert lacking_cores("cpu-3", 2) == words
    assert [lacking_cores(device, 1) for device in ("cpu", "cpu-1", "cpu-half", "cuda")] == [None] * 4

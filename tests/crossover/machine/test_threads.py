from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from crossover.machine.gpus import find_gpus
from crossover.machine.threads import (
    cores_of,
    cpus_of_gpus,
    physical_cores,
    threads_for,
    usable_cores,
)
from fake_nvml import FakeGpu, FakeNvml

FIRST, SECOND = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)
"""Two NUMA nodes of four cores each: CPU n and n + 8 are one core."""
FOUR = [FakeGpu("GPU-a", near=FIRST), FakeGpu("GPU-b", near=FIRST), *(FakeGpu(f"GPU-{n}", near=SECOND) for n in "cd")]
HALVES = {"GPU-1": list(FIRST), "GPU-2": list(SECOND)}


@pytest.fixture
def machine(kernel: Callable[..., Path]) -> Path:
    """A machine with eight cores of two threads each, and a control group."""
    siblings = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 8},{cpu % 8 + 8}\n"
        for cpu in range(16)
    }
    return kernel({**siblings, "proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpu.max": "max 100000\n"})


@pytest.mark.parametrize(
    ("quota", "environment", "sharers", "cores"),
    [
        ("max", {}, 1, 8),
        ("250000", {}, 1, 2),
        ("350000", {}, 2, 1),
        ("max", {"SLURM_CPUS_PER_TASK": "3"}, 1, 3),
        ("max", {"SLURM_CPUS_PER_TASK": "2"}, 2, 1),
        ("max", {"OMP_NUM_THREADS": "1"}, 1, 8),  # as Snakemake exports it
    ],
)
def test_quota_and_allocation_limit_the_cores(
    machine: Path, quota: str, environment: dict[str, str], sharers: int, cores: int
) -> None:
    (machine / "sys/fs/cgroup/job/cpu.max").write_text(f"{quota} 100000\n")
    assert usable_cores(range(16), environment, machine, sharers) == cores


def test_cpus_are_grouped_by_core(machine: Path, tmp_path: Path) -> None:
    assert cores_of([7, 8, 2, 1, 0], machine) == [[0, 8], [1], [2], [7]]
    assert cores_of([2, 1], tmp_path / "no topology") == [[1], [2]]
    assert physical_cores({0}, tmp_path / "no topology") == 1


@pytest.mark.parametrize(
    ("device", "cpu_threads", "cores", "threads"),
    [
        ("cpu", "auto", 16, 16),
        ("cpu", 4, 16, 4),
        ("cpu-1", "auto", 16, 1),
        ("cpu-half", "auto", 7, 3),
    ],
)
def test_number_of_threads_of_a_cpu_side(device: str, cpu_threads: int | str, cores: int, threads: int) -> None:
    assert threads_for(device, cpu_threads, cores) == threads


def shares(
    gpus: Collection[FakeGpu], root: Path, allowed: Collection[int] = range(16), visible: str | None = None
) -> dict[str, list[int]]:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return cpus_of_gpus(find_gpus(environment, FakeNvml(*gpus)), set(allowed), 16, root)


@pytest.mark.parametrize("visible", [None, "GPU-c", "3,2", "GPU-a,GPU-c"])
def test_gpus_of_a_node_share_its_cores_regardless_of_which_are_visible(machine: Path, visible: str | None) -> None:
    assert shares(FOUR, machine, visible=visible) == {
        "GPU-a": [0, 1, 8, 9],
        "GPU-b": [2, 3, 10, 11],
        "GPU-c": [4, 5, 12, 13],
        "GPU-d": [6, 7, 14, 15],
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [(FIRST, SECOND), ((), ()), (FIRST, ()), (FIRST, (0, 1, 8, 9)), (FIRST, (3, 4, 11, 12)), (FIRST, (20, 21))],
    ids=["a node each", "unknown", "one unknown", "within", "overlapping", "not there"],
)
def test_two_gpus_share_all_cores(machine: Path, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    assert shares([FakeGpu("GPU-1", near=first), FakeGpu("GPU-2", near=second)], machine) == HALVES


@pytest.mark.parametrize(
    ("allowed", "visible", "expected"),
    [
        ((0, 1, 2), "GPU-a", {}),
        ((0, 1, 4, 5), "GPU-a", {"GPU-a": [0, 1]}),
        ((0, 1, 8, 9, 2, 10), "GPU-b,GPU-a", {"GPU-a": [0, 8], "GPU-b": [1, 9]}),
        ((0, 1, 8, 9), "GPU-a,GPU-c", {"GPU-a": [0, 8], "GPU-c": [1, 9]}),
        ((0, 1, 8), "0,1,2", {}),
    ],
    ids=["near one GPU", "some near one GPU", "two share", "far from two", "too few cores"],
)
def test_a_job_divides_its_cpus_among_its_gpus(
    machine: Path, allowed: tuple[int, ...], visible: str, expected: dict[str, list[int]]
) -> None:
    assert shares(FOUR, machine, allowed, visible) == expected


def test_a_single_gpu_has_the_cores_of_its_node(machine: Path) -> None:
    """With two NUMA nodes; if the node is unknown, or the only one, the GPU's trial may run on all cores."""
    for near, expected in ((SECOND, {"GPU-1": list(SECOND)}), ((), {}), (range(16), {}), ((20, 21), {})):
        assert shares([FakeGpu("GPU-1", near=tuple(near))], machine) == expected
    split = FakeGpu("GPU-1", instances=(FakeGpu("MIG-1"), FakeGpu("MIG-2")), near=FIRST)
    assert shares([split], machine) == {"MIG-1": list(FIRST), "MIG-2": list(FIRST)}
    assert shares([], machine) == {}


def test_instances_of_a_gpu_have_its_cores_in_common(machine: Path) -> None:
    split = FakeGpu("GPU-1", instances=(FakeGpu("MIG-1"), FakeGpu("MIG-2")))
    cpus = shares([split, FakeGpu("GPU-2")], machine)
    assert cpus == {"MIG-1": list(FIRST), "MIG-2": list(FIRST), "GPU-2": list(SECOND)}
    given = (0, 8, 1, 9)  # a MIG instance counts as its whole GPU
    assert shares([split, FakeGpu("GPU-2")], machine, given, "MIG-1,MIG-2") == {}
    assert shares([split, FakeGpu("GPU-2")], machine, given, "MIG-1,GPU-2")["GPU-2"] == [1, 9]

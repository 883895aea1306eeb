"""Who gets which cores, on machines that exist only here."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from crossover.machine.gpus import find_gpus
from crossover.machine.threads import cpus_of_gpus, visible_boards
from fake_nvml import FakeGpu, FakeNvml

FIRST, SECOND = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)
"""Two NUMA nodes of four cores each: CPU n and n + 8 are one core."""
FOUR = [FakeGpu("GPU-a", near=FIRST), FakeGpu("GPU-b", near=FIRST), *(FakeGpu(f"GPU-{n}", near=SECOND) for n in "cd")]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for cpu in range(16):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 8},{cpu % 8 + 8}\n")
    return tmp_path


def shares(
    gpus: Collection[FakeGpu], root: Path, allowed: Collection[int] = range(16), visible: str | None = None
) -> dict[str, list[int]]:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return cpus_of_gpus(find_gpus(environment, FakeNvml(*gpus)), set(allowed), 16, root)


def test_gpus_of_a_node_share_its_cores_whole_and_without_overlap(machine: Path) -> None:
    assert shares(FOUR, machine) == {
        "GPU-a": [0, 1, 8, 9],
        "GPU-b": [2, 3, 10, 11],
        "GPU-c": [4, 5, 12, 13],
        "GPU-d": [6, 7, 14, 15],
    }


@pytest.mark.parametrize("visible", ["GPU-c", "3,2", "GPU-a,GPU-c"])
def test_a_gpu_has_the_same_cores_whichever_are_visible(machine: Path, visible: str) -> None:
    found, alone = shares(FOUR, machine), shares(FOUR, machine, visible=visible)
    assert alone == found


def test_all_gpus_have_as_many_cores_so_that_their_rows_are_alike(machine: Path) -> None:
    found = shares([FakeGpu("GPU-1", near=FIRST), *(FakeGpu(f"GPU-{n}", near=SECOND) for n in "234")], machine)
    assert found == {"GPU-1": [0, 8], "GPU-2": [4, 12], "GPU-3": [5, 13], "GPU-4": [6, 14]}


def test_a_gpu_with_a_node_for_itself_has_all_of_it(machine: Path) -> None:
    assert shares([FakeGpu("GPU-1", near=SECOND), FakeGpu("GPU-2", near=FIRST)], machine) == {
        "GPU-1": list(SECOND),
        "GPU-2": list(FIRST),
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [((), ()), (FIRST, ()), (FIRST, (0, 1, 8, 9)), (FIRST, (3, 4, 11, 12)), (FIRST, (20, 21))],
    ids=["unknown", "one unknown", "within", "overlapping", "not there"],
)
def test_where_nearness_says_nothing_certain_all_cores_are_shared_out(
    machine: Path, one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    assert shares([FakeGpu("GPU-1", near=one), FakeGpu("GPU-2", near=other)], machine) == {
        "GPU-1": [0, 1, 2, 3, 8, 9, 10, 11],
        "GPU-2": [4, 5, 6, 7, 12, 13, 14, 15],
    }


def test_a_job_with_one_gpu_keeps_all_that_it_was_given(machine: Path) -> None:
    """Slurm gives a GPU job some CPUs, wherever its GPU is, and names the GPU."""
    assert shares(FOUR, machine, allowed=(0, 1, 4, 5), visible="GPU-a") == {}


def test_a_job_with_two_gpus_shares_what_it_was_given(machine: Path) -> None:
    assert shares(FOUR, machine, allowed=(0, 1, 8, 9, 2, 10), visible="GPU-b,GPU-a") == {
        "GPU-a": [0, 8],
        "GPU-b": [1, 9],
    }


def test_a_job_with_gpus_far_from_its_cores_shares_them_all_the_same(machine: Path) -> None:
    assert shares(FOUR, machine, allowed=(0, 1, 8, 9), visible="GPU-a,GPU-c") == {"GPU-a": [0, 8], "GPU-c": [1, 9]}


def test_one_gpu_is_not_bound(machine: Path) -> None:
    assert shares([FakeGpu("GPU-1", near=FIRST)], machine) == {}
    assert shares([], machine) == {}


def test_with_fewer_cores_than_gpus_nobody_is_left_without(machine: Path) -> None:
    assert shares(FOUR, machine, allowed=(0, 1, 8), visible="0,1,2") == {}


def test_instances_of_a_gpu_have_its_share_in_common(machine: Path) -> None:
    split = FakeGpu("GPU-1", instances=(FakeGpu("MIG-1"), FakeGpu("MIG-2")))
    found = shares([split, FakeGpu("GPU-2")], machine)
    assert found["MIG-1"] == found["MIG-2"] == [0, 1, 2, 3, 8, 9, 10, 11]
    assert found["GPU-2"] == [4, 5, 6, 7, 12, 13, 14, 15]


def test_without_a_topology_each_cpu_is_a_core(tmp_path: Path) -> None:
    assert shares([FakeGpu("GPU-1"), FakeGpu("GPU-2")], tmp_path)["GPU-2"] == list(range(8, 16))


def test_the_board_of_a_visible_instance_is_visible() -> None:
    split = FakeNvml(FakeGpu("GPU-1", instances=(FakeGpu("MIG-1"), FakeGpu("MIG-2"))), FakeGpu("GPU-2"))
    for visible, boards in {"MIG-1": 1, "MIG-1,MIG-2": 1, "MIG-1,GPU-2": 2, "": 0}.items():
        assert len(visible_boards(find_gpus({"CUDA_VISIBLE_DEVICES": visible}, split))) == boards

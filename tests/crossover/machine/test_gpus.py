from __future__ import annotations

import pytest

from crossover.machine.gpus import find_gpus
from fake_nvml import FakeGpu, FakeNvml

FIRST = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
SECOND = "GPU-8941aaaa-0000-4106-c12f-20bd9faed9f6"
THIRD = "GPU-c0ffee00-0000-4106-c12f-20bd9faed9f6"
THREE = FakeNvml(FakeGpu(FIRST), FakeGpu(SECOND, knows_mig=False), FakeGpu(THIRD))

PART = "MIG-11111111-d1f2-d08c-b40e-0812b597ae69"
OTHER = "MIG-22222222-d1f2-d08c-b40e-0812b597ae69"
SPLIT = FakeNvml(
    FakeGpu(FIRST),
    FakeGpu(
        SECOND,
        instances=(None, FakeGpu(PART, within=(1, 0)), FakeGpu(OTHER, within=(13, 0))),
    ),
    FakeGpu(THIRD, instances=()),
)


def ids(chosen: str, nvml: FakeNvml = THREE) -> list[str]:
    return list(find_gpus({"CUDA_VISIBLE_DEVICES": chosen}, nvml).visible)


@pytest.mark.parametrize(
    ("chosen", "visible"),
    [
        ("", []),
        (" 2 , 0", [THIRD, FIRST]),
        ("0,3,1", [FIRST]),
        ("0,0", []),
        ("GPU-8932", [FIRST]),
        ("GPU-894,GPU-c", [SECOND, THIRD]),
        ("GPU-89", []),  # matches two GPUs
        ("GPU-c,GPU-c0", []),  # names a GPU twice
    ],
)
def test_chosen_by_index_or_uuid(chosen: str, visible: list[str]) -> None:
    assert ids(chosen) == visible


@pytest.mark.parametrize(
    ("chosen", "visible"),
    [
        ("1", [PART, OTHER]),
        (f"{OTHER},0", [OTHER, FIRST]),
        (f"MIG-{SECOND}/1/0", [PART]),
        (f"MIG-{SECOND}/1", []),  # a prefix of two UUIDs
        (f"MIG-{SECOND}/13/0,{OTHER}", []),  # names an instance twice
    ],
)
def test_chosen_instances(chosen: str, visible: list[str]) -> None:
    assert ids(chosen, SPLIT) == visible


def test_what_is_near_a_gpu_is_read_from_words_of_64_cpus() -> None:
    far = (1, 63, 64, 200)
    gpus = FakeNvml(FakeGpu(FIRST, near=far), FakeGpu(SECOND))
    assert [gpu.near for gpu in find_gpus({}, gpus).installed] == [set(far), set()]

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


@pytest.mark.parametrize(
    ("nvml", "chosen", "visible"),
    [
        (THREE, "", []),
        (THREE, " 2 , 0", [THIRD, FIRST]),
        (THREE, "0,3,1", [FIRST]),
        (THREE, "0,0", []),
        (THREE, "GPU-8932", [FIRST]),
        (THREE, "GPU-894,GPU-c", [SECOND, THIRD]),
        (THREE, "GPU-89", []),  # matches two GPUs
        (THREE, "GPU-c,GPU-c0", []),  # names a GPU twice
        (SPLIT, "1", [PART, OTHER]),
        (SPLIT, f"{OTHER},0", [OTHER, FIRST]),
        (SPLIT, f"MIG-{SECOND}/1/0", [PART]),
        (SPLIT, f"MIG-{SECOND}/1", []),  # a prefix of two UUIDs
        (SPLIT, f"MIG-{SECOND}/13/0,{OTHER}", []),  # names an instance twice
    ],
)
def test_gpus_and_instances_are_chosen_by_index_or_uuid(nvml: FakeNvml, chosen: str, visible: list[str]) -> None:
    assert list(find_gpus({"CUDA_VISIBLE_DEVICES": chosen}, nvml).visible) == visible


def test_the_cpus_near_a_gpu_are_read_from_words_of_64_bits() -> None:
    far = (1, 63, 64, 200)
    gpus = FakeNvml(FakeGpu(FIRST, near=far), FakeGpu(SECOND))
    assert [gpu.near for gpu in find_gpus({}, gpus).installed] == [set(far), set()]

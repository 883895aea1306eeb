"""NVML as far as the workflow asks it, for machines that exist only in a test."""

from __future__ import annotations

from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class FakeGpu:
    """A GPU or a MIG instance, and at once its handle."""

    uuid: str
    name: str = "Brand G1"
    instances: tuple[FakeGpu | None, ...] | None = None
    """MIG instances by index, with gaps; None in a GPU that is not split."""
    within: tuple[int, int] = (0, 0)
    """Ids of an instance's GPU instance and compute instance."""
    knows_mig: bool = True
    lost: bool = False
    near: tuple[int, ...] = ()
    """CPUs of its NUMA node; none where the driver cannot tell."""
    ideal: tuple[int, ...] = ()
    """The same, as drivers tell it that know no NUMA nodes."""


def _words(cpus: tuple[int, ...], words: int) -> list[int]:
    if not cpus:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == word) for word in range(words)]


class FakeNvml:
    """Answers as pynvml does, with its error class."""

    NVMLError = pynvml.NVMLError
    NVML_AFFINITY_SCOPE_NODE = pynvml.NVML_AFFINITY_SCOPE_NODE

    def __init__(self, *gpus: FakeGpu, there: bool = True, counts: bool = True) -> None:
        self.gpus = gpus
        self.there = there
        self.counts = counts
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.there:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.1"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 13010

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if not self.counts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        if self.gpus[index].lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: FakeGpu) -> str:  # noqa: N802
        return handle.uuid

    def nvmlDeviceGetName(self, handle: FakeGpu) -> str:  # noqa: N802
        return handle.name

    def nvmlDeviceGetMigMode(self, handle: FakeGpu) -> list[int]:  # noqa: N802
        if not handle.knows_mig:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [int(handle.instances is not None), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeGpu) -> int:  # noqa: N802
        return len(handle.instances or ())

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeGpu, index: int) -> FakeGpu:  # noqa: N802
        instance = (handle.instances or ())[index]
        if instance is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return instance

    def nvmlDeviceGetGpuInstanceId(self, handle: FakeGpu) -> int:  # noqa: N802
        return handle.within[0]

    def nvmlDeviceGetComputeInstanceId(self, handle: FakeGpu) -> int:  # noqa: N802
        return handle.within[1]

    def nvmlDeviceGetCpuAffinityWithinScope(self, handle: FakeGpu, words: int, scope: int) -> list[int]:  # noqa: N802
        assert scope == self.NVML_AFFINITY_SCOPE_NODE
        return _words(handle.near, words)

    def nvmlDeviceGetCpuAffinity(self, handle: FakeGpu, words: int) -> list[int]:  # noqa: N802
        return _words(handle.ideal, words)

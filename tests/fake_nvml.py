"""A fake NVML with the functions that the workflow calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pynvml


@dataclass(frozen=True)
class FakeGpu:
    uuid: str
    instances: tuple[FakeGpu | None, ...] | None = None
    """MIG instances by index, with None for gaps; None for a GPU without MIG."""
    within: tuple[int, int] = (0, 0)
    """Ids of an instance's GPU instance and compute instance."""
    knows_mig: bool = True
    lost: bool = False
    near: tuple[int, ...] = ()
    """CPUs of its NUMA node; empty if the driver cannot tell."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Further answers by the function's name, or by its name and arguments: `nvmlDeviceGetClock(1, 2)`.

    `fields` are those of nvmlDeviceGetFieldValues. Queries without an answer are not supported, as on many real GPUs.
    """


def unsupported(number: int = pynvml.NVML_ERROR_NOT_SUPPORTED) -> Any:
    raise pynvml.NVMLError(number)


class FakeNvml:
    """The module pynvml; a GPU's UUID is its handle. Queries of a GPU's state need an open session."""

    def __init__(self, *gpus: FakeGpu, there: bool = True, counts: bool = True, opens: int = 0) -> None:
        self.boards = gpus
        self.devices = {device.uuid: device for gpu in gpus for device in (gpu, *(gpu.instances or ())) if device}
        self.gpus = {uuid: dict(gpu.answers) for uuid, gpu in self.devices.items()}
        self.there = there
        self.counts = counts
        self.opens = opens
        """The error code of opening NVML; 0: no error."""
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.there:
            unsupported(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        if self.opens:
            unsupported(self.opens)
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.1"

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return 13010

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.boards) if self.counts else unsupported(pynvml.NVML_ERROR_UNKNOWN)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        gpu = self.boards[index]
        return unsupported(pynvml.NVML_ERROR_GPU_IS_LOST) if gpu.lost else gpu.uuid

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid if uuid in self.devices else unsupported(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:  # noqa: N802
        gpu = self.devices[handle]
        mig_mode = [int(gpu.instances is not None), 0] if gpu.knows_mig else None
        return self.gpus[handle].get("nvmlDeviceGetMigMode", mig_mode) or unsupported()

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:  # noqa: N802
        return len(self.devices[handle].instances or ())

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:  # noqa: N802
        instance = (self.devices[handle].instances or ())[index]
        return instance.uuid if instance else unsupported(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetGpuInstanceId(self, handle: str) -> int:  # noqa: N802
        return self.devices[handle].within[0]

    def nvmlDeviceGetComputeInstanceId(self, handle: str) -> int:  # noqa: N802
        return self.devices[handle].within[1]

    def nvmlDeviceGetCpuAffinityWithinScope(self, handle: str, words: int, scope: int) -> list[int]:  # noqa: N802
        assert scope == pynvml.NVML_AFFINITY_SCOPE_NODE
        cpus = self.devices[handle].near or unsupported()
        return [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == word) for word in range(words)]

    def nvmlDeviceGetFieldValues(self, handle: str, fields: Sequence[int]) -> list[SimpleNamespace]:  # noqa: N802
        values = self.gpus[handle].get("fields", {})
        return [
            SimpleNamespace(
                nvmlReturn=pynvml.NVML_SUCCESS if number in values else pynvml.NVML_ERROR_NOT_SUPPORTED,
                value=SimpleNamespace(ullVal=values.get(number, 999)),
            )
            for number in fields
        ]

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        return partial(self._answer, name) if name.startswith("nvmlDevice") else real

    def _answer(self, name: str, handle: str, *arguments: int, **_: Any) -> Any:
        assert self.opened, "NVML is not open"
        answers = self.gpus[handle]
        for key in (f"{name}({', '.join(map(str, arguments))})", name):
            if key in answers:
                return answers[key]
        return unsupported()

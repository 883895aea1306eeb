"""NVML, opened for one device; a query that a GPU, a driver or a container cannot answer is None, never a failure."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class OpenGpu:
    """Handles of one GPU, or of one MIG instance and the GPU that it is a part of."""

    device: Any
    board: Any
    """What has the clocks, the power and the temperature; the same as `device` without MIG."""
    is_instance: bool


@contextmanager
def session(nvml: types.ModuleType) -> Iterator[bool]:
    """Keep NVML open, and tell whether there is one; a session within another costs nothing."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        nvml.nvmlShutdown()


@contextmanager
def open_gpu(uuid: str | None, nvml: types.ModuleType) -> Iterator[OpenGpu | None]:
    """Open NVML for a GPU or a MIG instance by its UUID; None where there is no NVML or no such device."""
    if uuid is None:
        yield None
        return
    with session(nvml) as there:
        yield _find(uuid, nvml) if there else None


def ask(nvml: types.ModuleType, *queries: Callable[[], Answer]) -> Answer | None:
    """The answer of the first query that NVML can answer, None if it can answer none."""
    for query in queries:
        try:
            return query()
        except nvml.NVMLError:
            continue
    return None


def list_gpus(nvml: types.ModuleType) -> list[str]:
    """UUIDs of the GPUs that NVML sees, in its order; none where there is no NVML."""

    def uuid_of(index: int) -> str:
        uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    with session(nvml) as there:
        count = (ask(nvml, nvml.nvmlDeviceGetCount) or 0) if there else 0
        found = [ask(nvml, partial(uuid_of, index)) for index in range(count)]
    return [uuid for uuid in found if uuid is not None]


def _find(uuid: str, nvml: types.ModuleType) -> OpenGpu | None:
    # torch gives a MIG instance's UUID without its kind, so that a caller may take it for a whole GPU's.
    names = dict.fromkeys([uuid, f"MIG-{uuid.removeprefix('GPU-')}"])
    device = ask(nvml, *(partial(nvml.nvmlDeviceGetHandleByUUID, name) for name in names))
    if device is None:
        return None
    board = ask(nvml, lambda: nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device))
    return OpenGpu(device, device if board is None else board, is_instance=board is not None)


def driver_version(nvml: types.ModuleType) -> str | None:
    """Version of the NVIDIA driver; None where there is no NVML."""
    with session(nvml) as there:
        version = ask(nvml, nvml.nvmlSystemGetDriverVersion) if there else None
    return version.decode() if isinstance(version, bytes) else version

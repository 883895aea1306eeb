"""Which NVIDIA GPUs a process may use, by the rules of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

WORD_BITS = 64
CPU_WORDS = 128
"""NVML's sets of CPUs are arrays of 64-bit words; 128 of them hold the 8192 CPUs that Linux can have."""


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU, or a MIG instance of one."""

    id: str
    """Its name in CUDA_VISIBLE_DEVICES: `GPU-...` or `MIG-...`."""
    name: str


@dataclass(frozen=True)
class InstalledGpu:
    """A physical GPU: its usable parts, and all names that CUDA_VISIBLE_DEVICES may give them."""

    usable: tuple[VisibleGpu, ...]
    names: Mapping[str, tuple[VisibleGpu, ...]]
    near: frozenset[int] = frozenset()
    """Logical CPUs of its NUMA node; empty if the driver does not say."""


@dataclass(frozen=True)
class Gpus:
    """The NVIDIA GPUs of a machine."""

    installed: tuple[InstalledGpu, ...] = ()
    """All GPUs that the driver shows, in the order of the PCI bus."""
    visible: tuple[VisibleGpu, ...] = ()
    """The GPUs that this process may use, in CUDA's order."""


def find_gpus(environment: Mapping[str, str], nvml: Any) -> Gpus:
    """The NVIDIA GPUs of this machine, and those that a process with this environment may use.

    `nvml` is the module pynvml, initialised. Raises `nvml.NVMLError` if the driver cannot count its GPUs.
    """
    installed = _installed(nvml)
    return Gpus(tuple(installed), tuple(_visible(installed, environment.get("CUDA_VISIBLE_DEVICES"))))


def _visible(installed: Sequence[InstalledGpu], chosen: str | None) -> list[VisibleGpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves; all if it is not set.

    An index counts in the order of the PCI bus, as NVML and nvidia-smi do. CUDA does the same if the GPUs are alike or
    CUDA_DEVICE_ORDER=PCI_BUS_ID. Source of the rules: "CUDA Environment Variables" in the CUDA Programming Guide,
    and for repeated names and `1st`, which is 1, `_parse_visible_devices` of torch 2.13.
    """
    if chosen is None:
        return [gpu for one in installed for gpu in one.usable]
    visible: list[VisibleGpu] = []
    for name in chosen.split(","):
        found = _find(name.strip(), installed)
        if found is None:
            break
        visible += found
    return visible if len(set(visible)) == len(visible) else []


def _installed(nvml: Any) -> list[InstalledGpu]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_describe(nvml.nvmlDeviceGetHandleByIndex(index), nvml))
        except nvml.NVMLError:
            continue  # off the bus, or not open to this process: CUDA does not count it either
    return found


def _describe(handle: Any, nvml: Any) -> InstalledGpu:
    gpu, near = _identify(handle, nvml), _near(handle, nvml)
    if not _is_split(handle, nvml):
        return InstalledGpu((gpu,), {gpu.id: (gpu,)}, near)
    instances: list[VisibleGpu] = []
    names: dict[str, tuple[VisibleGpu, ...]] = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            instance = _identify(part, nvml)
            within = f"{nvml.nvmlDeviceGetGpuInstanceId(part)}/{nvml.nvmlDeviceGetComputeInstanceId(part)}"
        except nvml.NVMLError:
            continue  # the numbers of the instances may have gaps
        instances.append(instance)
        names |= {instance.id: (instance,), f"MIG-{gpu.id}/{within}": (instance,)}
    return InstalledGpu(tuple(instances), names | {gpu.id: tuple(instances)}, near)


def _identify(handle: Any, nvml: Any) -> VisibleGpu:
    return VisibleGpu(str(nvml.nvmlDeviceGetUUID(handle)), str(nvml.nvmlDeviceGetName(handle)))


def _near(handle: Any, nvml: Any) -> frozenset[int]:
    """The CPUs of a GPU's NUMA node; empty if the driver does not say."""
    words: list[int] = []
    with suppress(nvml.NVMLError):
        words = list(nvml.nvmlDeviceGetCpuAffinityWithinScope(handle, CPU_WORDS, nvml.NVML_AFFINITY_SCOPE_NODE))
    return frozenset(cpu for cpu in range(WORD_BITS * len(words)) if words[cpu // WORD_BITS] >> cpu % WORD_BITS & 1)


def _is_split(handle: Any, nvml: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # a GPU without MIG
        return False
    return bool(current)


def _find(name: str, installed: Sequence[InstalledGpu]) -> tuple[VisibleGpu, ...] | None:
    """The GPUs that an entry of CUDA_VISIBLE_DEVICES names; None if it ends the list."""
    if number := re.match(r"\+?(\d+)", name):
        index = int(number[1])
        return installed[index].usable if index < len(installed) else None
    if not name.startswith(("GPU-", "MIG-")):
        return None
    names = {known: gpus for one in installed for known, gpus in one.names.items()}
    if name in names:
        return names[name]
    abbreviated = {gpus for known, gpus in names.items() if known.startswith(name)}
    return abbreviated.pop() if len(abbreviated) == 1 else None

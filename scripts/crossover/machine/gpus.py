"""The NVIDIA GPUs of a machine, and those that CUDA_VISIBLE_DEVICES lets a process use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

WORD_BITS = 64
CPU_WORDS = 128
"""NVML returns CPU sets as arrays of 64-bit words; 128 words suffice for 8192 CPUs, Linux's maximum on x86-64."""


@dataclass(frozen=True)
class InstalledGpu:
    usable: tuple[str, ...]
    """UUID of the GPU, or UUIDs of its MIG instances: `GPU-...` or `MIG-...`."""
    near: frozenset[int] = frozenset()
    """Logical CPUs of the GPU's NUMA node; empty if the driver does not report them."""


@dataclass(frozen=True)
class Gpus:
    installed: tuple[InstalledGpu, ...] = ()
    """The accessible GPUs, in PCI bus order."""
    visible: tuple[str, ...] = ()
    """UUIDs of the GPUs and MIG instances that this process may use, in CUDA's order."""

    def to_json(self) -> str:
        return json.dumps({"installed": [vars(gpu) for gpu in self.installed], "visible": self.visible}, default=list)

    @classmethod
    def from_json(cls, text: str) -> Gpus:
        fields = json.loads(text)
        installed = (InstalledGpu(tuple(gpu["usable"]), frozenset(gpu["near"])) for gpu in fields["installed"])
        return cls(tuple(installed), tuple(fields["visible"]))


Names = Mapping[str, tuple[str, ...]]
"""The UUIDs that each name in CUDA_VISIBLE_DEVICES selects."""


def find_gpus(environment: Mapping[str, str], nvml: Any) -> Gpus:
    """The NVIDIA GPUs of this machine, and those that a process with this environment may use.

    `nvml` is the module pynvml, initialised. Raises `nvml.NVMLError` if the driver cannot count its GPUs.
    """
    installed: list[InstalledGpu] = []
    names: dict[str, tuple[str, ...]] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        with suppress(nvml.NVMLError):  # CUDA, too, skips a GPU that is inaccessible or has fallen off the bus
            gpu, names_of_gpu = _describe(nvml.nvmlDeviceGetHandleByIndex(index), nvml)
            installed.append(gpu)
            names |= names_of_gpu
    return Gpus(tuple(installed), tuple(_visible(installed, names, environment.get("CUDA_VISIBLE_DEVICES"))))


def _visible(installed: Sequence[InstalledGpu], names: Names, chosen: str | None) -> list[str]:
    """The UUIDs that CUDA_VISIBLE_DEVICES allows; all if it is not set.

    Indices follow the PCI bus order, as in NVML and nvidia-smi. CUDA uses this order if the GPUs are identical or
    CUDA_DEVICE_ORDER=PCI_BUS_ID. Source of the rules: "CUDA Environment Variables" in the CUDA Programming Guide.
    Repeated names, and entries such as `1st` for 1, are treated as in `_parse_visible_devices` of torch 2.13.
    """
    if chosen is None:
        return [gpu for board in installed for gpu in board.usable]
    visible: list[str] = []
    for name in chosen.split(","):
        uuids = _find(name.strip(), installed, names)
        if uuids is None:
            break
        visible += uuids
    return visible if len(set(visible)) == len(visible) else []


def _describe(handle: Any, nvml: Any) -> tuple[InstalledGpu, Names]:
    gpu, near = str(nvml.nvmlDeviceGetUUID(handle)), _near(handle, nvml)
    if not _is_split(handle, nvml):
        return InstalledGpu((gpu,), near), {gpu: (gpu,)}
    instances: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with suppress(nvml.NVMLError):  # the numbers of the instances may have gaps
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            instance = str(nvml.nvmlDeviceGetUUID(part))
            within = f"{nvml.nvmlDeviceGetGpuInstanceId(part)}/{nvml.nvmlDeviceGetComputeInstanceId(part)}"
            instances.append(instance)
            names |= {instance: (instance,), f"MIG-{gpu}/{within}": (instance,)}
    return InstalledGpu(tuple(instances), near), names | {gpu: tuple(instances)}


def _near(handle: Any, nvml: Any) -> frozenset[int]:
    words: list[int] = []
    with suppress(nvml.NVMLError):
        words = list(nvml.nvmlDeviceGetCpuAffinityWithinScope(handle, CPU_WORDS, nvml.NVML_AFFINITY_SCOPE_NODE))
    return frozenset(cpu for cpu in range(WORD_BITS * len(words)) if words[cpu // WORD_BITS] >> cpu % WORD_BITS & 1)


def _is_split(handle: Any, nvml: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # the GPU does not support MIG
        return False
    return bool(current)


def _find(name: str, installed: Sequence[InstalledGpu], names: Names) -> tuple[str, ...] | None:
    """The UUIDs for an entry of CUDA_VISIBLE_DEVICES; None if the entry is invalid, which ends the list."""
    if number := re.match(r"\+?(\d+)", name):
        index = int(number[1])
        return installed[index].usable if index < len(installed) else None
    if not name.startswith(("GPU-", "MIG-")):
        return None
    if name in names:
        return names[name]
    abbreviated = {gpus for full_name, gpus in names.items() if full_name.startswith(name)}
    return abbreviated.pop() if len(abbreviated) == 1 else None

"""Which NVIDIA GPUs a process may use: the rules of CUDA_VISIBLE_DEVICES, said once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU, or one instance of a GPU that MIG splits."""

    id: str
    """What CUDA_VISIBLE_DEVICES calls it: `GPU-...` or `MIG-...`."""
    name: str


def visible_gpus(environment: Mapping[str, str], nvml: Any) -> list[VisibleGpu]:
    """List the NVIDIA GPUs that a process with this environment may use, in CUDA's order.

    `nvml` is the module pynvml, initialised. Raises `nvml.NVMLError` where the driver cannot count its GPUs.

    An index counts in the order of the PCI bus, as NVML and nvidia-smi do. CUDA counts so too where the GPUs are alike
    or CUDA_DEVICE_ORDER=PCI_BUS_ID. Source of the rules: "CUDA Environment Variables" in the CUDA Programming Guide,
    and for repeated names and `1st`, which is 1, `_parse_visible_devices` of torch 2.13.
    """
    installed = _installed(nvml)
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [gpu for one in installed for gpu in one.usable]
    visible: list[VisibleGpu] = []
    for name in chosen.split(","):
        found = _find(name.strip(), installed)
        if found is None:
            break
        visible += found
    return visible if len(set(visible)) == len(visible) else []


@dataclass(frozen=True)
class _Installed:
    """A physical GPU: what may be used of it, and everything that CUDA_VISIBLE_DEVICES may call that."""

    usable: tuple[VisibleGpu, ...]
    names: Mapping[str, tuple[VisibleGpu, ...]]


def _installed(nvml: Any) -> list[_Installed]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_describe(nvml.nvmlDeviceGetHandleByIndex(index), nvml))
        except nvml.NVMLError:
            continue  # off the bus, or closed to this process: CUDA does not count it either
    return found


def _describe(handle: Any, nvml: Any) -> _Installed:
    gpu = _identify(handle, nvml)
    if not _is_split(handle, nvml):
        return _Installed((gpu,), {gpu.id: (gpu,)})
    instances: list[VisibleGpu] = []
    names: dict[str, tuple[VisibleGpu, ...]] = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            instance = _identify(part, nvml)
            within = f"{nvml.nvmlDeviceGetGpuInstanceId(part)}/{nvml.nvmlDeviceGetComputeInstanceId(part)}"
        except nvml.NVMLError:
            continue  # the instances need not be numbered without gaps
        instances.append(instance)
        names |= {instance.id: (instance,), f"MIG-{gpu.id}/{within}": (instance,)}
    return _Installed(tuple(instances), names | {gpu.id: tuple(instances)})


def _identify(handle: Any, nvml: Any) -> VisibleGpu:
    return VisibleGpu(str(nvml.nvmlDeviceGetUUID(handle)), str(nvml.nvmlDeviceGetName(handle)))


def _is_split(handle: Any, nvml: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # a GPU that knows no MIG
        return False
    return bool(current)


def _find(name: str, installed: list[_Installed]) -> tuple[VisibleGpu, ...] | None:
    """What an entry of CUDA_VISIBLE_DEVICES stands for; None where it ends the list."""
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

"""Energy of the device over synchronised work, from its own counter; a short or shared window gives none."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.config.words import ENERGY_WINDOW_MIN_S
from crossover.machine.kernel import read_kernel, read_number
from crossover.machine.nvml import ask, open_gpu

MICRO = 1e-6

PACKAGE_MAX_W = 1000.0
"""No CPU package draws more; a window in which one could have wrapped its counter more than once gives no energy."""


@dataclass(frozen=True)
class RaplCounter:
    """The energy counter of one CPU package, which starts again at 0 beyond its range. In microjoules."""

    energy_uj: int
    range_uj: int


def read_gpu_energy_mj(uuid: str | None, nvml: types.ModuleType) -> int | None:
    """Energy of a whole GPU since its driver was loaded, in mJ; None for a MIG instance, which has no counter.

    Source: nvmlDeviceGetTotalEnergyConsumption.
    """
    with open_gpu(uuid, nvml) as gpu:
        if gpu is None or gpu.is_instance:
            return None
        return ask(nvml, lambda: int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu.board)))


def read_rapl(root: Path = Path("/")) -> dict[str, RaplCounter] | None:
    """Energy counters of all CPU packages by name; None if there are none, or one may not be read.

    Most systems let only the administrator read them. Domains inside a package and the whole platform (psys) are left
    out: they would count twice. Source: the kernel's Documentation/power/powercap.
    """
    counters = {}
    for folder in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        name = read_kernel(folder / "name")
        if name is None or not name.startswith("package-"):
            continue
        energy_uj, range_uj = read_number(folder / "energy_uj"), read_number(folder / "max_energy_range_uj")
        if energy_uj is None or range_uj is None:
            return None
        counters[name] = RaplCounter(energy_uj, range_uj)
    return counters or None


def package_joules(
    before: Mapping[str, RaplCounter] | None, after: Mapping[str, RaplCounter] | None, window_s: float
) -> float | None:
    """Energy of all CPU packages between two readings; None without counters, or if one may have wrapped twice."""
    if not before or not after or before.keys() != after.keys():
        return None
    if any(counter.range_uj * MICRO < PACKAGE_MAX_W * window_s for counter in after.values()):
        return None
    return MICRO * sum((after[name].energy_uj - before[name].energy_uj) % (after[name].range_uj + 1) for name in after)


def energy_columns(used_j: float | None, source: str, window_s: float, steps: int, shared: bool) -> dict[str, Any]:
    """Energy columns of `Measurement` for `steps` synchronised steps.

    All None for a window under 10 s, where others are known to have used the device (`shared`), or without a counter.
    """
    if used_j is None or used_j <= 0 or window_s < ENERGY_WINDOW_MIN_S or steps < 1 or shared:
        return {"energy_j": None, "energy_per_step_j": None, "energy_source": None}
    return {"energy_j": used_j, "energy_per_step_j": used_j / steps, "energy_source": source}

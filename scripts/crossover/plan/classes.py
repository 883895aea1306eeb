"""A cluster's partitions and classes of nodes: the cells of each class, and the resources that its jobs ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossover.config.studies import Cell
from crossover.config.words import is_cpu

Classes = Mapping[str, Mapping[str, Any]]
"""The resources of a class's jobs, and its `devices`, by the name of the class."""

GPU_ONLY = "gpu_model"
"""A job without a GPU must not ask for this resource."""

NO_RESOURCES = ("devices", "cores")
"""Keys of a class that are no resources of its jobs."""


def devices_of(classes: Classes | None, devices: Sequence[str]) -> tuple[str, ...]:
    """All devices of a run: those of its classes, or `devices` without classes."""
    named = [device for one in (classes or {"": {}}).values() for device in one.get("devices") or devices]
    return tuple(dict.fromkeys(named))


def on_classes(cells: Iterable[Cell], classes: Classes | None, devices: Sequence[str]) -> list[Cell]:
    """The cells on each class that has their device; unchanged without classes."""
    grid = list(cells)
    if classes is None:
        return grid
    return [
        replace(cell, machine=name)
        for name, one in classes.items()
        for cell in grid
        if cell.device.partition("-")[0] in (one.get("devices") or devices)
    ]


def placed(pattern: str, classes: Classes | None) -> str:
    """The pattern of a cell's path, with a level for the class if there are classes."""
    return pattern if classes is None else pattern.replace("/{device}", "/{machine}/{device}")


def resources_asked(classes: Classes | None) -> list[str]:
    """The resources that any class sets."""
    return sorted({name for one in (classes or {}).values() for name in one if name not in NO_RESOURCES})


def resource_of(classes: Classes, name: str, machine: str, device: str) -> str | None:
    """A resource of a job on a class; None if the class does not set it, or the job has no GPU to choose."""
    if name == GPU_ONLY and is_cpu(device):
        return None
    value = classes[machine].get(name)
    return None if value is None else str(value)


class _Wildcards(dict[str, str]):
    """Wildcards as a profile's expressions see them."""

    __getattr__ = dict.__getitem__


def cpu_partition(text: object) -> str | None:
    """The Slurm partition of CPU cells in a profile's `slurm_partition`, a name or an expression of wildcards.

    None if the profile names none.
    """
    try:
        value = eval(str(text), {"wildcards": _Wildcards(device="cpu")})  # as Snakemake does for each job
    except Exception:
        value = text
    return value if isinstance(value, str) else None

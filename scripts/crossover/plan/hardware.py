"""Classes of a cluster's nodes: the cells of each, and the resources that their jobs ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossover.config.studies import Cell
from crossover.config.words import HERE, is_cpu
from crossover.errors import UserError

Classes = Mapping[str, Mapping[str, Any]]
"""The resources of a class's jobs, and its `devices`, by the name of the class."""

GPU_ONLY = "gpu_model"
"""The resource that a job without a GPU must not ask for."""

NO_RESOURCES = ("devices", "cores")
"""What a class says beside the resources of its jobs."""

OF_ALL = ("slurm_partition", "slurm_account", "qos")
"""Resources that every class must set if one does, since what the profile says of all nodes then counts for none."""


def devices_of(classes: Classes | None, devices: Sequence[str]) -> tuple[str, ...]:
    """All devices of a run: those of its classes of nodes, or, where there are none, `devices`."""
    named = [device for one in (classes or {"": {}}).values() for device in one.get("devices") or devices]
    return tuple(dict.fromkeys(named))


def on_classes(cells: Sequence[Cell], classes: Classes | None, devices: Sequence[str]) -> list[Cell]:
    """The cells on each class that has their device; as they are where no classes are named."""
    if classes is None:
        return list(cells)
    return [
        replace(cell, machine=name)
        for name, one in classes.items()
        for cell in cells
        if cell.device.partition("-")[0] in (one.get("devices") or devices)
    ]


def placed(pattern: str, classes: Classes | None) -> str:
    """The pattern of a cell's path, with a level for the class of nodes where classes are named."""
    return pattern if classes is None else pattern.replace("/{device}", "/{machine}/{device}")


def resources_asked(classes: Classes | None) -> list[str]:
    """The resources that any class sets."""
    return sorted({name for one in (classes or {}).values() for name in one if name not in NO_RESOURCES})


def resource_of(classes: Classes, name: str, machine: str, device: str) -> str | None:
    """What a job on a class asks for; None where the class does not say, or the job has no GPU to choose."""
    if name == GPU_ONLY and is_cpu(device):
        return None
    value = classes[machine].get(name)
    return None if value is None else str(value)


def check_classes(classes: Classes | None, devices: Sequence[str] | None) -> None:
    """Raise UserError where a class has no name or no devices of its own; None: `devices` is auto."""
    for name, one in (classes or {}).items():
        if name == HERE:
            raise UserError(f"hardware.{name}: the name stands for a run without classes; allowed: any other name")
        if not one.get("devices") and devices is None:
            raise UserError(
                f"hardware.{name}.devices: missing, and devices is auto, which does not tell classes apart; name "
                "the devices of these nodes, as [cpu, cuda]"
            )
        for missing in (key for key in OF_ALL if key in resources_asked(classes) and key not in one):
            raise UserError(f"hardware.{name}.{missing}: missing, but another class has it; give each class its own")


def cores_of(classes: Classes | None, machine: str) -> int | None:
    """The cores of a node of a class; None where it does not say."""
    return (classes or {}).get(machine, {}).get("cores")


def check_sent(classes: Classes | None, local: bool) -> None:
    """Raise UserError where no executor sends jobs to classes of nodes."""
    if classes and local:
        raise UserError(
            f"hardware: {', '.join(classes)} are classes of a cluster's nodes, but the jobs would run here; send them "
            "there with a profile, as --profile profiles/slurm, or set hardware to null"
        )

"""Workloads: what a trial computes. Each public module here is one.

A workload's module states four literal constants, which are read without importing it:

- SIZE_NAME: what its size axis counts, in the plural
- SIZE_RANGE: smallest and largest size it can build
- DATASET: the dataset it reads, a key of `crossover.datasets.MAKERS`
- PROTOCOLS: the protocols it offers

and defines `build_model(size) -> nn.Module` and `build(cell, data, device) -> Task`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from crossover.errors import UserError
from crossover.studies import Cell


@dataclass(frozen=True)
class Task:
    """A model on its device and the step to time."""

    model: nn.Module
    step: Callable[[], None]
    cycle_steps: int = 1
    """Steps after which the work repeats; a block holds whole cycles, so that all blocks do the same work."""


def count_parameters(cell: Cell) -> int:
    """Number of trainable parameters of a cell's model, counted without allocating any."""
    with torch.device("meta"):
        model: nn.Module = _module(cell).build_model(cell.size)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_task(cell: Cell, data: Mapping[str, torch.Tensor], device: torch.device) -> Task:
    """Build a cell's workload on a device, from the dataset's tensors on the host."""
    task: Task = _module(cell).build(cell, data, device)
    return task


def _module(cell: Cell) -> Any:
    return importlib.import_module(f"{__name__}.{cell.workload}")


def whole_batches(data: Mapping[str, torch.Tensor], batch_size: int) -> int:
    """Number of full batches in the dataset; raises UserError where there is none."""
    rows = data["features"].shape[0]
    if batch_size > rows:
        raise UserError(f"batch size {batch_size} is larger than the dataset; allowed: at most its {rows} rows")
    return rows // batch_size

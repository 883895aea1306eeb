"""Workloads: what a trial computes. Each public module here is one.

A workload's module states four literal constants, which are read without importing it:

- SIZE_NAME: what its size axis counts, in the plural
- SIZE_RANGE: smallest and largest size it can build
- DATASET: the dataset it reads, a key of `crossover.datasets.MAKERS`
- PROTOCOLS: the protocols it offers

and defines `build(cell, data, device) -> Task`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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

    @property
    def parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)


def build_task(cell: Cell, data: Mapping[str, torch.Tensor], device: torch.device) -> Task:
    """Build a cell's workload on a device, from the dataset's tensors on the host."""
    module = importlib.import_module(f"{__name__}.{cell.workload}")
    task: Task = module.build(cell, data, device)
    return task


def whole_batches(data: Mapping[str, torch.Tensor], batch_size: int) -> int:
    """Number of full batches in the dataset; raises UserError where there is none."""
    rows = data["features"].shape[0]
    if batch_size > rows:
        raise UserError(f"batch size {batch_size} is larger than the dataset; allowed: at most its {rows} rows")
    return rows // batch_size

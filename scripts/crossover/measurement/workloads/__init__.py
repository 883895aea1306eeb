"""Workloads: what a trial computes. Each public module here is one.

A workload's module states four literal constants, which are read without importing it:

- SIZE_NAME: what its size axis counts, in the plural
- SIZE_RANGE: smallest and largest size it can build
- DATASET: the dataset it reads, a key of `crossover.datasets.MAKERS`
- PROTOCOLS: the protocols it offers

and, where it needs them, SIZES and BATCH_SIZES (the only ones that it can build), GRANULARITY (of which every size that
it can build is a multiple), VARIANTS (where it offers more than the plain one) and CLASSES (how many the labels of its
dataset have, where a study names them). It defines
`build_model(size) -> nn.Module` and `build(cell, data, arithmetic) -> Task`, and, where its model can grow to fill a
host's memory, `parameter_count(size) -> int`: plain arithmetic, which is read without importing the module, too.

For a study with `quality`, the resident task is a `TrainingTask` whose `resident` holds features, as its
model takes them, and labels, in the dataset's order; its model maps them to scores of the classes, or to a tuple that
starts with those.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task


def build_model(cell: Cell) -> nn.Module:
    """A cell's model with fresh weights, in float32 on the host."""
    model: nn.Module = workload_code(cell.workload).build_model(cell.size)
    return model


def count_parameters(cell: Cell) -> int:
    """Number of trainable parameters of a cell's model, counted without allocating any."""
    with torch.device("meta"):
        model = build_model(cell)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_task(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Task:
    """Build a cell's workload on a device, from the dataset's tensors on the host."""
    task: Task = workload_code(cell.workload).build(cell, data, arithmetic)
    return task


def workload_code(workload: str) -> Any:
    """The imported module of a workload."""
    return importlib.import_module(f"{__name__}.{workload}")


def whole_batches(data: Mapping[str, torch.Tensor], batch_size: int) -> int:
    """Number of full batches in the dataset; raises UserError where there is none."""
    rows = data["features"].shape[0]
    if batch_size > rows:
        raise UserError(f"batch size {batch_size} is larger than the dataset; allowed: at most its {rows} rows")
    return rows // batch_size

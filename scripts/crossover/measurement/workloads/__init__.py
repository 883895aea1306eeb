"""Workloads: the models and steps that trials run. Each public module here is a workload.

It has four literal constants, which are read without importing it:

- SIZE_NAME: what its size axis counts, in the plural
- SIZE_RANGE: the smallest and the largest size
- DATASET: the dataset it reads, a key of `crossover.datasets.MAKERS`
- PROTOCOLS: the protocols it offers; `resident` implies `from_host` and `from_pageable`, which move the tensors in its
task's `resident` to host memory

and, if needed, SIZES and BATCH_SIZES (the only ones offered), GRANULARITY (of which sizes are multiples), VARIANTS
(in addition to the plain one), CLASSES (of the dataset's labels) and PRELOADED (a module here that takes long to
import). It defines `build_model(size) -> nn.Module` and `build(cell, data, arithmetic) -> Task`. If its model can fill
a host's memory, it also defines `parameter_count(size) -> int`, plain arithmetic that is also read without importing
the module.

In a study with `quality`, the resident task is a `TrainingTask` whose `resident` holds the model's inputs and the
labels, in the dataset's order. Its model returns scores of the classes, or a tuple that starts with them.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import nn

from crossover.config.studies import Cell
from crossover.config.words import COPYING, PINNED
from crossover.config.workloads import workload_traits
from crossover.errors import UserError
from crossover.measurement.step.endings import early_end
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task, copy_each_step, trainable_parameters

Tell = Callable[[dict[str, Any]], None]
"""Receives the messages listed at `process.child.do`."""


def not_told(_message: Mapping[str, Any]) -> None:
    """Ignore a message."""


def workload_code(cell: Cell, tell: Tell = not_told) -> Any:
    """The builder of a cell's model and task: a module here, or the user's model, which calls `tell`."""
    if cell.model is None:
        return importlib.import_module(f"{__name__}.{cell.workload}")
    # Imported by a computed name, which `machine.code_key` does not follow: the module counts for users' models only.
    if cell.model.is_function:
        return importlib.import_module("..own_function", __name__).OwnFunction(cell, tell)
    return importlib.import_module("..own_model", __name__).OwnModel(cell, tell)


def build_model(cell: Cell) -> nn.Module:
    """A cell's model with fresh weights, on the host."""
    model: nn.Module = workload_code(cell).build_model(cell.size)
    return model


def count_parameters(cell: Cell) -> int | None:
    """Number of trainable parameters of a cell's model, counted without allocating them.

    None for a model that cannot be built on this machine, which the trial will report, and for a user's model, whose
    number is reported when it is built.
    """
    if cell.model is not None:
        return None
    try:
        with torch.device("meta"):
            model = build_model(cell)
    except Exception as error:
        if early_end(error) is None:
            raise
        return None
    return trainable_parameters(model)


def build_task(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic, tell: Tell = not_told) -> Task:
    """Build a cell's workload on a device, from the dataset's tensors on the host."""
    task: Task = workload_code(cell, tell).build(cell, data, arithmetic)
    copies = cell.protocol in COPYING and not (
        cell.model and cell.model.is_function
    )  # a function copies its own inputs
    if copies and arithmetic.device.type != "cpu":
        copy_each_step(task, pinned=cell.protocol == PINNED)
    return task


def read_dataset(path: str | None, workload: str) -> dict[str, torch.Tensor]:
    """The tensors of a workload's safetensors file, on the host; none without a path.

    Raises UserError for an unreadable file, and for another workload's dataset.
    """
    if path is None:
        return {}
    if not Path(path).is_file():
        raise UserError(f"--dataset: {path} is not a file; make it with scripts/make_dataset.py's rule")
    try:
        with safe_open(path, framework="pt") as file:
            dataset = (file.metadata() or {}).get("dataset")
        data = load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"--dataset: {path} is not a readable safetensors file: {error}; delete it, and the run will make it again"
        ) from None
    wanted = workload_traits(workload).dataset
    if wanted is not None and dataset not in (None, wanted):
        raise UserError(
            f"--dataset: {path} holds '{dataset}', but workload '{workload}' reads '{wanted}'; give its file"
        )
    return data


def has_generated_rows(path: str) -> bool | None:
    """Whether the rows of a dataset's safetensors file are generated; None if the file does not say."""
    with safe_open(path, framework="pt") as file:
        generated = (file.metadata() or {}).get("generated")
    return None if generated is None else bool(json.loads(generated))


def whole_batches(data: Mapping[str, torch.Tensor], batch_size: int) -> int:
    """Number of full batches in the dataset; raises UserError if there is none."""
    rows = data["features"].shape[0]
    if batch_size > rows:
        raise UserError(f"batch size {batch_size} is larger than the dataset; allowed: at most its {rows} rows")
    return rows // batch_size

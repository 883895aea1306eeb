"""Workloads: the models and steps that trials run. Each public module in this package is a workload.

A workload's module has four literal constants, which are read without importing the module:

- SIZE_NAME: what the size counts, in the plural, such as "layers"
- SIZE_RANGE: the smallest and the largest size
- DATASET: the dataset that it reads, a key of `crossover.datasets.MAKERS`, or None
- PROTOCOLS: the protocols that it offers; `resident` implies `from_host`, `from_pageable`, `each` and `cold`

Optional constants:

- SIZES, BATCH_SIZES: the only sizes and batch sizes that it offers
- GRANULARITY: every size is a multiple of this number
- VARIANTS: all variants, including `plain`
- CLASSES: the number of classes of the dataset's labels
- PRELOADED: a module of this package that the trial server imports once, since it is slow to import

For `from_host` and `from_pageable`, the tensors in the task's `resident` are moved to host memory.

The module defines `build_model(size) -> nn.Module` and `build(cell, data, arithmetic) -> Task`. If its model can fill a
host's memory, it also defines `parameter_count(size) -> int` in plain arithmetic, since this function, too, is read
without an import.

For a study with `quality`, the resident task is a `TrainingTask` whose `resident` contains the model's inputs and the
labels, in the dataset's order. Its model returns the scores of the classes, or a tuple that starts with them.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
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
from crossover.measurement import Tell, ignore
from crossover.measurement.step.endings import early_end
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import Task, copy_each_step, parameter_count


def workload_code(cell: Cell, tell: Tell = ignore) -> Any:
    """Return what builds a cell's model and task: the workload's module, or a UserModel or UserFunction."""
    if cell.model is None:
        return importlib.import_module(f"{__name__}.{cell.workload}")
    # `machine.code_key` does not follow these computed names, so only the keys of users' models include the modules.
    if cell.model.is_function:
        return importlib.import_module("..user.function", __name__).UserFunction(cell, tell)
    return importlib.import_module("..user.model", __name__).UserModel(cell, tell)


def build_model(cell: Cell) -> nn.Module:
    """A cell's model with fresh weights, on torch's default device."""
    model: nn.Module = workload_code(cell).build_model(cell.size)
    return model


def count_parameters(cell: Cell) -> int | None:
    """Number of trainable parameters of a cell's model, counted without allocating them.

    None if building the model ends with a status such as `unsupported`. Also None for a user's model, whose parameters
    are counted when it is built.
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
    return parameter_count(model, "train")


def build_task(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic, tell: Tell = ignore) -> Task:
    """Build a cell's task on the device of `arithmetic`, from the dataset's tensors on the host."""
    task: Task = workload_code(cell, tell).build(cell, data, arithmetic)
    # A plain function copies its inputs itself.
    if cell.protocol in COPYING and arithmetic.device.type != "cpu" and not task.is_function:
        copy_each_step(task, pinned=cell.protocol == PINNED)
    return task


def read_dataset(path: str | None, workload: str) -> dict[str, torch.Tensor]:
    """Read a workload's dataset into host memory; {} if `path` is None.

    Raises UserError if the file is missing, damaged or contains a different dataset.
    """
    if path is None:
        return {}
    if not Path(path).is_file():
        raise UserError(f"--dataset: {path} is not a file; the rule make_dataset makes it")
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
            f"--dataset: {path} contains '{dataset}', but workload '{workload}' reads '{wanted}'; give its file"
        )
    return data


def has_generated_rows(path: str) -> bool | None:
    """Return True if a dataset's rows are generated, False if they are real; None if the file does not record it."""
    with safe_open(path, framework="pt") as file:
        generated = (file.metadata() or {}).get("generated")
    return None if generated is None else bool(json.loads(generated))


def whole_batches(data: Mapping[str, torch.Tensor], batch_size: int) -> int:
    """Number of full batches in the dataset; raises UserError if it has fewer rows than a batch."""
    rows = data["features"].shape[0]
    if batch_size > rows:
        raise UserError(f"batch size {batch_size} is larger than the dataset; allowed: at most its {rows} rows")
    return rows // batch_size

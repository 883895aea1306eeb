"""A whole training and its predictions, with the same initial weights and the same order of rows on all devices.

The seed sets the weights and each epoch's order of rows on the host, so devices differ only in their arithmetic (and in
dropout, which is drawn on the device). The model is trained with the workload's step on resident data. The dataset is
in random order. If it is standardised, its mean and standard deviation include the held-out rows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import fields

import torch
from torch import nn
from torch.nn import functional

from crossover.errors import InvalidError, TooSlowError, UserError
from crossover.measurement import Tell, ignore
from crossover.measurement.cell import Columns, OpenCell, open_cell, with_rows
from crossover.measurement.process.jobs import TrainingJob
from crossover.measurement.step.conditions import read_switches
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads import count_parameters, has_generated_rows, whole_batches
from crossover.tables.columns import Training

PROBE_STEPS = 20
"""Number of steps from which the training time is projected. The first step, which loads libraries, is left out."""

PREDICTED_ROWS = 8192

Data = dict[str, torch.Tensor]


def run_training(job: TrainingJob, tell: Tell = ignore) -> Training:
    """Train in this process and predict the held-out rows.

    If the training runs out of memory, needs an unsupported precision, is too slow or diverges, the row has a status
    such as `oom` and a reason. `tell` receives `begun` with the columns known before the model is built. Raises
    UserError for a missing device or dataset, and other errors as `OpenCell.ending` does.
    """
    cell = open_cell(job)
    columns = cell.columns | {"parameters": count_parameters(job.cell)}
    facts = {field.name: columns[field.name] for field in fields(Training) if field.name in columns}
    tell({"begun": facts})
    try:
        outcome = _train_and_predict(job, cell)
    except Exception as error:
        status, reason = cell.ending(error)
        outcome = {"status": status, "reason": reason}
    return Training(**{**facts, **outcome, "backend_settings": json.dumps(read_switches())})


def _train_and_predict(job: TrainingJob, cell: OpenCell) -> Columns:
    arithmetic = cell.arithmetic()
    training, predicted = split(cell.data(), job.test_share)
    whole_batches(training, job.cell.batch_size)
    # The workload converts the rows to its model's inputs.
    inputs = cell.build(with_rows(predicted, job.cell.batch_size), arithmetic, job.seed).resident[0]
    task = cell.build({name: rows.clone() for name, rows in training.items()}, arithmetic, job.seed)
    assert isinstance(task, TrainingTask)
    start_s = time.perf_counter()
    steps = fit(task, job, cell.target.synchronise)
    train_s = time.perf_counter() - start_s
    scores = predict(task.model, inputs[: len(predicted["labels"])], arithmetic)
    cell.check(task)
    if not bool(torch.isfinite(scores).all()):
        raise InvalidError("the training diverged: the model predicts NaN or infinity")
    return {
        "status": "ok",
        "generated_data": has_generated_rows(job.dataset) if job.dataset else None,
        "labels": predicted["labels"].tolist(),
        "predictions": scores.argmax(dim=1).tolist(),
        "loss": float(functional.cross_entropy(scores, predicted["labels"])),
        "steps": steps,
        "train_s": train_s,
    }


def split(data: Mapping[str, torch.Tensor], test_share: float) -> tuple[Data, Data]:
    """Split off the last `test_share` of the rows, rounded up as in scikit-learn; returns training and held-out rows.

    Raises UserError if either part would be empty.
    """
    rows = len(data["labels"])
    trained = rows - math.ceil(rows * test_share)
    if not 0 < trained < rows:
        raise UserError(f"test_share: {test_share} leaves {trained} of {rows} rows to train on; choose another share")
    training = {name: tensor[:trained] for name, tensor in data.items()}
    return training, {name: tensor[trained:] for name, tensor in data.items()}


def fit(task: TrainingTask, job: TrainingJob, synchronise: Callable[[], None]) -> int:
    """Train for the job's epochs and return the number of steps.

    Raises TooSlowError if the first steps are too slow for the time limit.
    """
    order = torch.Generator().manual_seed(job.seed)
    rows = tuple(tensor.clone() for tensor in task.resident)
    epoch_steps = len(rows[1]) // job.cell.batch_size
    steps = job.epochs * epoch_steps
    for step in range(steps):
        if step % epoch_steps == 0:
            shuffled = torch.randperm(len(rows[1]), generator=order).to(task.arithmetic.device)
            for resident, ordered in zip(task.resident, rows, strict=True):
                resident.copy_(ordered[shuffled])
        if step == 1:
            synchronise()
            probe_s = time.perf_counter()
        task.step()
        if step == PROBE_STEPS:
            synchronise()
            step_s = (time.perf_counter() - probe_s) / PROBE_STEPS
            if step_s * steps > job.time_limit_s:
                raise TooSlowError(
                    f"a step takes {step_s:.3g} s, so that {steps} steps would take {step_s * steps:.3g} s, more than "
                    f"the limit of {job.time_limit_s:g} s; raise time_limit_s, or leave the precision out"
                )
    synchronise()
    return steps


def predict(model: nn.Module, features: torch.Tensor, arithmetic: Arithmetic) -> torch.Tensor:
    """The model's scores of shape (rows, classes), in double precision on the host."""
    model.eval()
    parts = []
    for rows in features.split(PREDICTED_ROWS):
        with torch.no_grad(), arithmetic.autocast():
            result = model(arithmetic.place(rows))
        scores = result[0] if isinstance(result, tuple) else result
        parts.append(scores.cpu().double())
    return torch.cat(parts)

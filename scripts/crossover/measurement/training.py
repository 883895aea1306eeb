"""A whole training, for its predictions: the same weights, rows and order of rows on every device.

Nothing is drawn on the device: the seed sets the weights and each epoch's order of rows on the host. So two devices
differ by their arithmetic alone (but for dropout, which draws on the device).

The workload's own resident step trains. Its data lie on the device in the dataset's order, so an epoch is shuffled by
overwriting them with themselves in a new order. Rows beyond the last whole batch are left out of the epoch.

A dataset holds training rows only, since what is timed needs no others. The rows to predict are its last ones, which
the training does not see; rows lie in random order, so that they are a random part. Features were standardised with
them included, which is the same for all that are compared.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

import pynvml
import torch
from torch import nn
from torch.nn import functional

from crossover.config.workloads import workload_traits
from crossover.errors import UserError
from crossover.machine.nvml import driver_version
from crossover.machine.threads import lacking_cores, usable_cores
from crossover.measurement.batch_try import with_rows
from crossover.measurement.clock.time_limit import TooSlowError
from crossover.measurement.host.host import describe_host
from crossover.measurement.process.requests import TrainingRun
from crossover.measurement.step.conditions import Conditions, set_conditions
from crossover.measurement.step.dataset_file import read_dataset
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.endings import InvalidError, early_end
from crossover.measurement.step.precision import Arithmetic, UnsupportedError, arithmetic_of
from crossover.measurement.step.seeds import seed_all
from crossover.measurement.step.switches import read_switches
from crossover.measurement.step.tasks import Task, TrainingTask
from crossover.measurement.workloads import build_task, count_parameters, whole_batches
from crossover.tables.columns import Training

PROBE_STEPS = 20
"""After the first step, which loads libraries, so many tell whether all of them fit into the time limit."""

PREDICTED_ROWS = 8192
"""Rows that are predicted at once, the same on every device."""

Data = dict[str, torch.Tensor]


def run_training(job: TrainingRun, begin: Callable[[dict[str, Any]], None] = lambda _facts: None) -> Training:
    """Train in this process and predict the rows held out.

    Out of memory, a precision that the device lacks, a training too slow for the time limit and one that diverged are
    rows with a status and a reason. `begin` is told what is known before the model is built. Raises UserError for a
    device or a dataset that is not there, and for a workload that is no training.
    """
    conditions = set_conditions(job)
    facts = _known(job, conditions.target)
    begin(facts)
    try:
        outcome = _train_and_predict(job, conditions)
    except Exception as error:
        if (end := early_end(error)) is None:
            raise
        outcome = {"status": end[0], "reason": end[1]}
    return Training(**{**facts, **outcome, "backend_settings": json.dumps(read_switches())})


def _known(job: TrainingRun, target: OpenDevice) -> dict[str, Any]:
    """The columns that are known before anything is trained."""
    host = describe_host()
    columns = {f.name for f in fields(Training)}
    return {
        **asdict(job.cell),
        **{name: value for name, value in host.items() if name in columns},
        "seed": job.seed,
        "size_name": workload_traits(job.cell.workload).size_name,
        "parameters": count_parameters(job.cell),
        "epochs": job.epochs,
        "test_share": job.test_share,
        "device_name": target.name or host["cpu_model"],
        "device_uuid": target.uuid,
        "driver_version": driver_version(pynvml) if target.device.type == "cuda" else None,
        "cudnn_version": str(torch.backends.cudnn.version()) if target.device.type == "cuda" else None,
        "backend_settings": json.dumps(read_switches()),
        "isolation": job.isolation,
        "code_version": job.code_version,
        "code_key": job.code_key,
        "packages": job.packages,
        "command": job.command,
    }


def _train_and_predict(job: TrainingRun, conditions: Conditions) -> dict[str, Any]:
    """The columns that depend on how the training ends."""
    target = conditions.target
    if reason := lacking_cores(job.cell.device, usable_cores()):
        raise UnsupportedError(reason)
    arithmetic = arithmetic_of(job.cell.precision, target.device)
    training, held_out = split(read_dataset(job.dataset, job.cell.workload), job.test_share)
    whole_batches(training, job.cell.batch_size)
    # The workload itself brings the rows into the form that its model takes.
    inputs = trainable(build_task(job.cell, with_rows(held_out, job.cell.batch_size), arithmetic), job).resident[0]
    seed_all(job.seed)
    task = trainable(build_task(job.cell, {name: rows.clone() for name, rows in training.items()}, arithmetic), job)
    conditions.check(task)
    start_s = time.perf_counter()
    steps = fit(task, job, target.synchronise)
    train_s = time.perf_counter() - start_s
    scores = predict(task.model, inputs[: len(held_out["labels"])], arithmetic)
    conditions.check(task)
    if not bool(torch.isfinite(scores).all()):
        raise InvalidError("the training diverged: what the model predicts is not a number")
    return {
        "status": "ok",
        "labels": held_out["labels"].tolist(),
        "predictions": scores.argmax(dim=1).tolist(),
        "loss": float(functional.cross_entropy(scores, held_out["labels"])),
        "steps": steps,
        "train_s": train_s,
    }


def split(data: Mapping[str, torch.Tensor], test_share: float) -> tuple[Data, Data]:
    """The training part and the part held out: the last `test_share` of the rows, rounded up, as scikit-learn does.

    Raises UserError where either part would be empty.
    """
    rows = len(data["labels"])
    trained = rows - math.ceil(rows * test_share)
    if not 0 < trained < rows:
        raise UserError(f"--test-share: {test_share} leaves {trained} of {rows} rows to train on; take another share")
    return {name: tensor[:trained] for name, tensor in data.items()}, {n: t[trained:] for n, t in data.items()}


def trainable(task: Task, job: TrainingRun) -> TrainingTask:
    """The task, if it is a training on resident features and labels; raises UserError if it is not."""
    if not isinstance(task, TrainingTask) or len(task.resident) != 2:
        raise UserError(
            f"--workload: '{job.cell.workload}' does not train on resident features and labels; "
            "allowed: a workload that does, such as higgs_mlp"
        )
    return task


def fit(task: TrainingTask, job: TrainingRun, synchronise: Callable[[], None]) -> int:
    """Train for the job's epochs of shuffled batches, and wait for the device; returns the number of steps.

    Raises TooSlowError where the first steps show that all of them would outlast the time limit.
    """
    order = torch.Generator().manual_seed(job.seed)
    rows = tuple(tensor.clone() for tensor in task.resident)
    epoch_steps = len(rows[1]) // job.cell.batch_size
    steps = job.epochs * epoch_steps
    for done in range(steps):
        if done % epoch_steps == 0:
            shuffled = torch.randperm(len(rows[1]), generator=order).to(task.arithmetic.device)
            for resident, ordered in zip(task.resident, rows, strict=True):
                resident.copy_(ordered[shuffled])
        if done == 1:
            synchronise()
            probe_s = time.perf_counter()
        task.step()
        if done == PROBE_STEPS:
            synchronise()
            _give_up_if_slow((time.perf_counter() - probe_s) / PROBE_STEPS, steps, job.time_limit_s)
    synchronise()
    return steps


def _give_up_if_slow(step_s: float, steps: int, time_limit_s: float) -> None:
    if step_s * steps > time_limit_s:
        raise TooSlowError(
            f"a step takes {step_s:.3g} s, so that {steps} steps would take {step_s * steps:.3g} s, "
            f"more than the limit of {time_limit_s:g} s; raise time_limit_s, or leave the precision out"
        )


def predict(model: nn.Module, features: torch.Tensor, arithmetic: Arithmetic) -> torch.Tensor:
    """The model's scores of each class, (rows, classes), in double precision on the host.

    A model that returns several tensors returns its scores first. It is left in evaluation mode.
    """
    model.eval()
    parts = []
    for rows in features.split(PREDICTED_ROWS):
        with torch.no_grad(), arithmetic.autocast():
            result = model(arithmetic.place(rows))
        scores = result[0] if isinstance(result, tuple) else result
        parts.append(scores.cpu().double())  # metrics are computed on the host
    return torch.cat(parts)

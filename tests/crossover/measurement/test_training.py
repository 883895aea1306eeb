"""A whole training: its predictions equal those of a plain loop, and how it may end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement import cell as cell_module
from crossover.measurement import training
from crossover.measurement.process.jobs import TrainingJob
from crossover.measurement.training import run_training, split
from crossover.measurement.workloads.higgs_mlp import build_model
from crossover.measurement.workloads.mnist_cnn import SIZE_RANGE

pytestmark = pytest.mark.usefixtures("own_switches")

CELL = Cell("quality", "higgs_mlp", "resident", 8, "fp32", "eager", 16, "cpu")


def points() -> dict[str, torch.Tensor]:
    """200 points; class 1 if the first coordinate is positive."""
    features = torch.randn(200, 2, generator=torch.Generator().manual_seed(3))
    return {"features": features, "labels": (features[:, 0] > 0).long()}


@pytest.fixture
def job(tmp_path: Path) -> TrainingJob:
    save_file(points(), tmp_path / "points.safetensors")
    return TrainingJob(
        cell=CELL,
        seed=5,
        epochs=2,
        test_share=0.33,
        dataset=str(tmp_path / "points.safetensors"),
        output="unused",
        threads=1,
        time_limit_s=60.0,
        command="the command",
    )


def by_hand(seed: int, epochs: int, batch: int, width: int) -> tuple[list[int], float]:
    """The predictions and loss of a plain loop; as in scikit-learn, ceil(0.33 * 200) = 66 rows are held out."""
    features, labels = points().values()
    torch.manual_seed(seed)
    model = build_model(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        rows = torch.randperm(134, generator=order)
        for first in range(0, 134 - batch + 1, batch):
            chosen = rows[first : first + batch]
            optimizer.zero_grad()
            nn.CrossEntropyLoss()(model(features[chosen])[0], labels[chosen]).backward()
            optimizer.step()
    with torch.no_grad():
        logits, _ = model(features[134:])
    loss = -logits.double().log_softmax(1)[torch.arange(66), labels[134:]].mean()
    return logits.argmax(1).tolist(), loss.item()


def test_a_training_equals_a_plain_loop(job: TrainingJob) -> None:
    row = run_training(job)
    predictions, loss = by_hand(seed=5, epochs=2, batch=8, width=16)
    assert (row.status, row.steps) == ("ok", 2 * 16)
    assert row.labels == points()["labels"][134:].tolist()
    assert row.predictions == predictions
    assert row.loss == pytest.approx(loss, rel=1e-6)
    assert by_hand(seed=5, epochs=1, batch=8, width=16)[1] != pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "fit", "status", "reason"),
    [
        ({"cell": replace(CELL, precision="tf32")}, None, "unsupported", "tf32 needs an NVIDIA GPU"),
        ({}, torch.OutOfMemoryError("8 GB wanted\nmore"), "oom", "8 GB wanted"),
        ({"epochs": 1000, "time_limit_s": 1e-4}, None, "timeout", "a step takes "),
    ],
)
def test_the_status_of_a_training_that_fails(
    job: TrainingJob,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    fit: Exception | None,
    status: str,
    reason: str,
) -> None:
    def fail(*_: object) -> None:
        raise fit

    if fit is not None:
        monkeypatch.setattr(training, "fit", fail)
    row = run_training(replace(job, **changes))
    assert (row.status, row.predictions, row.loss) == (status, None, None)
    assert (row.reason or "").startswith(reason)


@pytest.mark.parametrize(("module", "when"), [(cell_module, "build_task"), (training, "fit"), (training, "predict")])
def test_a_setting_changed_by_the_workload_makes_its_training_invalid(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch, module: Any, when: str
) -> None:
    real = getattr(module, when)

    def sneak(*given: Any) -> Any:
        torch.backends.cudnn.benchmark = True
        return real(*given)

    monkeypatch.setattr(module, when, sneak)
    row = run_training(job)
    assert (row.status, row.predictions) == ("invalid", None)
    assert row.reason == "cudnn.benchmark changed from False to True: the workload, or what it imports, must not set it"
    assert json.loads(row.backend_settings or "")["cudnn.benchmark"] is True


@pytest.mark.parametrize("limit_s", [16.01, 15.99])
def test_the_time_of_all_steps_counts_towards_the_limit(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch, limit_s: float
) -> None:
    """Each of 32 steps takes half a second; the time of all is projected from 20."""
    readings = iter([0.0, 0.0, 10.0, 16.0])
    monkeypatch.setattr(training.time, "perf_counter", lambda: next(readings))
    row = run_training(replace(job, time_limit_s=limit_s))
    assert row.status == ("ok" if limit_s > 16 else "timeout")
    assert row.reason is None or row.reason.startswith("a step takes 0.5 s, so that 32 steps would take 16 s")


def test_a_share_that_leaves_no_row_to_train_on_is_a_user_error() -> None:
    with pytest.raises(UserError, match=r"test_share: 0\.9 leaves 0 of 2 rows"):
        split({"features": torch.zeros(2, 2), "labels": torch.zeros(2)}, 0.9)


def test_images_are_converted_for_the_model_before_they_are_predicted(job: TrainingJob, tmp_path: Path) -> None:
    """The digits are stored as integers of shape (rows, 28, 28), and fewer than a batch are held out."""
    pixels = torch.randint(0, 256, (20, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    save_file({"features": pixels, "labels": torch.arange(20) % 10}, tmp_path / "digits.safetensors")
    cell = replace(CELL, workload="mnist_cnn", size=SIZE_RANGE[0])
    dataset = str(tmp_path / "digits.safetensors")
    row = run_training(replace(job, cell=cell, epochs=1, test_share=0.25, dataset=dataset))
    assert (row.status, row.steps, row.labels) == ("ok", 1, [5, 6, 7, 8, 9])
    assert row.predictions is not None
    assert len(row.predictions) == 5

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from crossover.measurement.workloads import digits_mlp
from crossover.measurement.workloads.higgs_mlp import Classifier
from tiny_tasks import cell_of, same_weights, task_of

RANDOM = torch.Generator().manual_seed(1)
DATA = {  # three full batches of 32, and one of four rows
    "features": torch.randn(100, 2, generator=RANDOM),
    "labels": torch.randint(0, 2, (100,), generator=RANDOM),
}


def test_as_published_trains_as_the_lesson_does() -> None:
    """The lesson's loop over two epochs, with the same shuffling, gives the same weights."""
    task: Any = task_of(cell_of("higgs_mlp", 8, 32, protocol="as_published"), DATA)
    torch.manual_seed(7)
    for _ in range(8):
        task.step()

    loader = DataLoader(TensorDataset(DATA["features"], DATA["labels"]), batch_size=32, shuffle=True)
    torch.manual_seed(0)
    model = Classifier(8)
    first_order = iter(loader)  # the task has opened one before its first step
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses, accuracies = [], []
    for batches in (first_order, loader):
        for features, labels in batches:
            model.zero_grad()
            logits, probabilities = model(features)
            loss = functional.cross_entropy(logits, labels)
            losses.append(loss.item())
            accuracies.append((probabilities.argmax(dim=-1) == labels).float().mean().item())
            loss.backward()
            optimizer.step()
    assert same_weights(task.model, model)
    assert (task.history, task.accuracies) == (losses, accuracies)
    assert task.reads_back


def pixels() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 10, (100,), generator=random)
    return {"features": torch.rand(100, 64, generator=random), "labels": labels}


@pytest.mark.parametrize(
    ("workload", "data", "build_model", "rate"),
    [("higgs_mlp", DATA, Classifier, 1e-3), ("digits_mlp", pixels(), digits_mlp.build_model, 0.1)],
)
def test_resident_trains_on_full_batches_in_order(workload: str, data: Any, build_model: Any, rate: float) -> None:
    task: Any = task_of(cell_of(workload, 8, 32), data)
    for _ in range(5):
        task.step()

    torch.manual_seed(0)
    model = build_model(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = torch.zeros(())
    for first in (0, 32, 64, 0, 32):
        optimizer.zero_grad()
        rows = slice(first, first + 32)
        outputs = model(data["features"][rows])
        loss = functional.cross_entropy(outputs[0] if workload == "higgs_mlp" else outputs, data["labels"][rows])
        losses += loss.detach()
        loss.backward()
        optimizer.step()
    assert same_weights(task.model, model)
    if workload == "higgs_mlp":
        assert torch.equal(task.loss_sum, losses)
        assert not task.loss_sum.requires_grad  # otherwise the graphs of all steps would stay in memory
        assert 0 < task.accuracy_sum <= 5
        assert not task.reads_back

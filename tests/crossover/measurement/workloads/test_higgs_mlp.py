from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_task, count_parameters
from crossover.measurement.workloads.higgs_mlp import Classifier


def cell(width: int, protocol: str) -> Cell:
    return Cell("hsf_width", "higgs_mlp", protocol, 32, "fp32", "eager", width, "cpu")


def task(width: int, data: dict[str, torch.Tensor], protocol: str) -> Task:
    torch.manual_seed(0)
    return build_task(cell(width, protocol), data, Arithmetic(torch.device("cpu")))


@pytest.fixture
def data() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {
        "features": torch.randn(100, 2, generator=random),  # three full batches and one of four rows
        "labels": torch.randint(0, 2, (100,), generator=random),
    }


@pytest.mark.parametrize("protocol", ["as_published", "resident"])
@pytest.mark.parametrize("width", [5, 100, 320])
def test_parameters_by_arithmetic(data: dict[str, torch.Tensor], protocol: str, width: int) -> None:
    expected = 3 * width + width * (width + 1) + 2 * (width + 1)
    assert count_parameters(cell(width, protocol)) == expected
    assert sum(weights.numel() for weights in task(width, data, protocol).model.parameters()) == expected


def test_logits_and_probabilities() -> None:
    logits, probabilities = Classifier(16)(torch.randn(32, 2))
    assert logits.shape == probabilities.shape == (32, 2)
    assert torch.allclose(probabilities.sum(dim=1), torch.ones(32))


def same_weights(model: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters(), strict=True))


def test_as_published_trains_as_the_lesson_does(data: dict[str, torch.Tensor]) -> None:
    """The lesson's loop, restated plainly over two epochs with the same shuffling, ends with the same weights."""
    ours: Any = task(8, data, "as_published")
    torch.manual_seed(7)
    for _ in range(8):
        ours.step()

    loader = DataLoader(TensorDataset(data["features"], data["labels"]), batch_size=32, shuffle=True)
    torch.manual_seed(0)
    model = Classifier(8)
    first_order = iter(loader)  # ours has one open before its first step
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
    assert same_weights(ours.model, model)
    assert ours.history == losses
    assert ours.accuracies == accuracies
    assert ours.reads_back


def test_resident_trains_on_full_batches_in_order(data: dict[str, torch.Tensor]) -> None:
    ours: Any = task(8, data, "resident")
    for _ in range(5):
        ours.step()

    torch.manual_seed(0)
    model = Classifier(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = torch.zeros(())
    for first in (0, 32, 64, 0, 32):
        model.zero_grad()
        loss = functional.cross_entropy(
            model(data["features"][first : first + 32])[0], data["labels"][first : first + 32]
        )
        losses += loss.detach()
        loss.backward()
        optimizer.step()
    assert same_weights(ours.model, model)
    assert torch.equal(ours.loss_sum, losses)
    assert 0 < ours.accuracy_sum <= 5
    assert not ours.reads_back


@pytest.mark.parametrize("protocol", ["as_published", "resident"])
def test_a_batch_larger_than_the_dataset_is_refused(data: dict[str, torch.Tensor], protocol: str) -> None:
    large = replace(cell(8, protocol), batch_size=101)
    with pytest.raises(UserError, match="batch size 101 is larger than the dataset; allowed: at most its 100 rows"):
        build_task(large, data, Arithmetic(torch.device("cpu")))


@pytest.mark.parametrize("precision", ["fp64", "bf16", "amp-bf16", "amp-fp16"])
@pytest.mark.parametrize("protocol", ["as_published", "resident"])
def test_every_protocol_trains_in_other_precisions(
    data: dict[str, torch.Tensor], protocol: str, precision: str
) -> None:
    arithmetic = arithmetic_of(precision, torch.device("cpu"))
    ours = build_task(cell(8, protocol), data, arithmetic)
    before = [parameter.clone() for parameter in ours.model.parameters()]
    features, labels = ours.next_inputs()
    assert (features.dtype, labels.dtype) == (arithmetic.dtype, torch.int64)
    for _ in range(5):
        ours.step()
    after = list(ours.model.parameters())
    assert all(parameter.dtype == arithmetic.dtype and torch.isfinite(parameter).all() for parameter in after)
    assert any(not torch.equal(new, old) for new, old in zip(after, before, strict=True))

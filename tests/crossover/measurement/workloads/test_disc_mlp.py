from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_task, count_parameters
from crossover.measurement.workloads.disc_mlp import build_model

ROOT = Path(__file__).parents[4]


def cell(linear_layers: int, batch_size: int = 100) -> Cell:
    return Cell("disc_depth", "disc_mlp", "resident", batch_size, "fp32", "eager", linear_layers, "cpu")


def task(linear_layers: int, data: dict[str, torch.Tensor], batch_size: int = 100) -> Task:
    torch.manual_seed(0)
    return build_task(cell(linear_layers, batch_size), data, Arithmetic(torch.device("cpu")))


@pytest.fixture
def data() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    return {
        "features": torch.randn(1000, 2, generator=random),
        "labels": torch.randint(0, 2, (1000,), generator=random),
    }


def test_parameters_equal_the_published_counts(data: dict[str, torch.Tensor]) -> None:
    published = pd.read_csv(ROOT / "config" / "published" / "disc_depth_parameters.csv", comment="#")
    assert len(published) == 11
    for linear_layers, parameters in published.itertuples(index=False):
        assert count_parameters(cell(linear_layers)) == parameters
        assert sum(weights.numel() for weights in task(linear_layers, data).model.parameters()) == parameters


def test_the_eight_layer_model_is_the_sources() -> None:
    widths = [(2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 128), (128, 256), (256, 2)]
    layers = list(build_model(8))
    assert [(layer.in_features, layer.out_features) for layer in layers if isinstance(layer, nn.Linear)] == widths
    assert [type(layer) for layer in layers[1::2]] == [nn.ReLU] * 7


def test_two_epochs_train_as_the_source_does(data: dict[str, torch.Tensor]) -> None:
    """The source's loop, restated plainly, ends with the same weights and prints the same."""
    ours: Any = task(4, data)
    progress = []
    for step in range(20):
        ours.step()
        if step % 10 == 9:
            progress.append(ours.progress)

    torch.manual_seed(0)
    model = build_model(4)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
    printed = []
    for _ in range(2):
        total, wrong = 0.0, 0
        for first in range(0, 1000, 100):
            labels = data["labels"][first : first + 100]
            output = model(data["features"][first : first + 100])
            loss = criterion(output, labels)
            total, wrong = total + loss.item(), wrong + int((output.argmax(dim=1) != labels).sum())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        printed.append(f"Train Loss {total:6.2f}, Train Error {wrong / 1000:5.2%}")
    assert progress == printed
    assert printed[0] != printed[1]
    for mine, theirs in zip(ours.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_cycle_is_an_epoch(data: dict[str, torch.Tensor]) -> None:
    assert task(3, data).cycle_steps == 10
    assert task(3, data, batch_size=250).cycle_steps == 4


def test_a_batch_larger_than_the_dataset_is_refused(data: dict[str, torch.Tensor]) -> None:
    with pytest.raises(UserError, match="batch size 1001 is larger than the dataset; allowed: at most its 1000 rows"):
        task(3, data, batch_size=1001)


@pytest.mark.parametrize("precision", ["fp64", "bf16", "amp-bf16", "amp-fp16"])
def test_an_epoch_in_another_precision_trains_as_well(data: dict[str, torch.Tensor], precision: str) -> None:
    torch.manual_seed(0)
    arithmetic = arithmetic_of(precision, torch.device("cpu"))
    ours: Any = build_task(cell(4), data, arithmetic)
    before = [parameter.clone() for parameter in ours.model.parameters()]
    for _ in range(10):
        ours.step()
    assert ours.progress.startswith("Train Loss")
    for parameter in ours.model.parameters():
        assert parameter.dtype == arithmetic.dtype
        assert torch.isfinite(parameter).all()
    assert any(not torch.equal(new, old) for new, old in zip(ours.model.parameters(), before, strict=True))
    assert not ours.accumulated_loss.requires_grad  # an epoch's graph is gone at its end


def test_labels_are_not_rounded(data: dict[str, torch.Tensor]) -> None:
    ours = build_task(cell(3), data, arithmetic_of("bf16", torch.device("cpu")))
    features, labels = ours.next_inputs()
    assert (features.dtype, labels.dtype) == (torch.bfloat16, torch.int64)
    assert torch.equal(labels, data["labels"][:100])

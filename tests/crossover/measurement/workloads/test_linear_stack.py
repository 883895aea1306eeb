from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import Task
from crossover.measurement.workloads import build_model, build_task, count_parameters

CPU = torch.device("cpu")
PUBLISHED = Cell("linear_stack", "linear_stack", "resident", 512, "fp32", "eager", 4096, "cpu")
SMALL = replace(PUBLISHED, batch_size=8, size=16)


def task(cell: Cell = SMALL, arithmetic: Arithmetic | None = None) -> Task:
    torch.manual_seed(5)
    return build_task(cell, {}, arithmetic or Arithmetic(CPU))


@pytest.mark.parametrize(("width", "parameters"), [(4096, 50_343_936), (16, 3 * 16 * 17)])
def test_parameters_by_arithmetic(width: int, parameters: int) -> None:
    assert count_parameters(replace(PUBLISHED, size=width)) == parameters


def test_the_model_is_the_recipes() -> None:
    model: Any = build_model(SMALL)
    assert [type(layer) for layer in model] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert model(torch.randn(8, 16)).shape == (8, 16)


def test_two_epochs_train_as_the_recipe_does() -> None:
    """The recipe's script, restated plainly from its first random number on, ends with the same weights."""
    ours = task()
    for _ in range(100):
        ours.step()

    torch.manual_seed(5)
    data = [torch.randn(8, 16) for _ in range(50)]
    targets = [torch.randn(8, 16) for _ in range(50)]
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    before = [parameter.clone() for parameter in net.parameters()]
    loss_fn, opt = nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.001)
    for _ in range(2):
        for features, target in zip(data, targets, strict=True):
            loss = loss_fn(net(features), target)
            loss.backward()
            opt.step()
            opt.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(ours.model.parameters(), net.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(net.parameters(), before, strict=True))


def test_mixed_precision_trains_as_the_recipe_does() -> None:
    """The same with autocast around model and loss, and the scaler."""
    ours = task(arithmetic=arithmetic_of("amp-fp16", CPU))
    for _ in range(10):
        ours.step()

    torch.manual_seed(5)
    data, targets = ([torch.randn(8, 16) for _ in range(50)] for _ in range(2))
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    loss_fn, opt = nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.001)
    scaler = torch.amp.GradScaler("cpu")
    for features, target in zip(data[:10], targets, strict=False):
        with torch.autocast("cpu", torch.float16):
            loss = loss_fn(net(features), target)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(ours.model.parameters(), net.parameters(), strict=True))


@pytest.mark.parametrize(("precision", "item_bytes"), [("fp32", 4), ("amp-fp16", 4), ("bf16", 2), ("fp64", 8)])
def test_all_batches_are_resident_and_nothing_else(precision: str, item_bytes: int) -> None:
    ours = task(arithmetic=arithmetic_of(precision, CPU))
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in ours.resident}
    assert len(storages) == 100
    assert sum(storages.values()) == 2 * 50 * 8 * 16 * item_bytes
    ours.step()
    assert all(parameter.grad is None for parameter in ours.model.parameters())


def test_the_published_resident_bytes_by_arithmetic() -> None:
    """Data, weights and gradients; the published 1,350,681,600 bytes are these and 13 activations of 8 MiB, nearly."""
    with torch.device("meta"):
        ours = build_task(PUBLISHED, {}, Arithmetic(torch.device("meta")))
    assert sum(tensor.nbytes for tensor in ours.resident) == 838_860_800
    weights = sum(parameter.nbytes for parameter in ours.model.parameters())
    assert 0 < 1_350_681_600 - (838_860_800 + 2 * weights) - 13 * 512 * 4096 * 4 < 2**15


def test_every_batch_has_its_turn_and_is_random() -> None:
    ours = task()
    epoch = [ours.next_inputs() for _ in range(50)]
    again = ours.next_inputs()
    assert all(mine is first for mine, first in zip(again, epoch[0], strict=True))
    assert len({float(tensor.sum()) for batch in epoch for tensor in batch}) == 100
    assert abs(torch.cat([tensor.flatten() for batch in epoch for tensor in batch]).std() - 1) < 0.03
    assert ours.cycle_steps == 1


def test_the_seed_decides() -> None:
    first, again = task().next_inputs(), task().next_inputs()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    torch.manual_seed(6)
    assert not torch.equal(build_task(SMALL, {}, Arithmetic(CPU)).next_inputs()[0], first[0])


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "amp-fp16"])
def test_the_answer_is_right_in_every_precision(precision: str) -> None:
    cell = replace(SMALL, batch_size=32, size=128, precision=precision)
    ours = task(cell, arithmetic_of(precision, CPU))
    ours.step()
    answer = compare_with_reference(ours, lambda: build_model(cell), precision)
    assert set(answer.errors) == {"result", "gradient"}
    assert answer.wrong is answer.unchecked is None

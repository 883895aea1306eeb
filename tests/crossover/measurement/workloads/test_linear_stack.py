from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.workloads import build_task
from tiny_tasks import cell_of, same_weights, task_of


@pytest.mark.parametrize(("precision", "steps"), [("fp32", 100), ("amp-fp16", 10)])
def test_training_as_the_recipe_does(precision: str, steps: int) -> None:
    """The recipe's script gives the same weights from the same random numbers."""
    task = task_of(cell_of("linear_stack", 16, 8, precision=precision))
    assert task.cycle_steps == 1
    for _ in range(steps):
        task.step()

    torch.manual_seed(0)
    data, targets = ([torch.randn(8, 16) for _ in range(50)] for _ in range(2))
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    before = [parameter.clone() for parameter in net.parameters()]
    loss_fn, opt = nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.001)
    mixed = precision == "amp-fp16"
    scaler = torch.amp.GradScaler("cpu", enabled=mixed)
    for step in range(steps):
        with torch.autocast("cpu", torch.float16) if mixed else contextlib.nullcontext():
            loss = loss_fn(net(data[step % 50]), targets[step % 50])
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    assert same_weights(task.model, net)
    assert not any(torch.equal(a, b) for a, b in zip(net.parameters(), before, strict=True))


def test_the_published_bytes_follow_from_the_shapes() -> None:
    """The published 1,350,681,600 bytes are nearly those of data, weights, gradients and 13 activations of 8 MiB."""
    with torch.device("meta"):
        task: Any = build_task(cell_of("linear_stack", 4096, 512), {}, Arithmetic(torch.device("meta")))
    assert sum(tensor.nbytes for tensor in task.resident) == 838_860_800
    weights = sum(parameter.nbytes for parameter in task.model.parameters())
    assert 0 < 1_350_681_600 - (838_860_800 + 2 * weights) - 13 * 512 * 4096 * 4 < 2**15

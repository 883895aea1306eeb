"""FLOPs, bytes and times of a step's operators, worked out by hand, and the host's work between operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from crossover.measurement.step.devices import OpenDevice, open_device
from crossover.measurement.step.operators import CALLING_S, GAP_STEPS, TINY_OPERATORS, count_work, host_work_s
from crossover.measurement.step.precision import arithmetic_of
from tiny_tasks import CPU, Applied, TinyInference, TinyTraining, flops_of

MLP_FORWARD = 2 * 7 * (2 * 30 + 30 * 50 + 50 * 3)
MLP_TRAINING = 3 * MLP_FORWARD - 2 * 7 * 2 * 30  # the gradient of the inputs is not needed


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 3))


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "amp-fp16", "bf16", "fp64"])
def test_linear_layers(precision: str) -> None:
    task = TinyTraining(mlp(), [torch.randn(7, 2)], arithmetic_of(precision, CPU))
    state = torch.get_rng_state()
    assert flops_of(task.step) == MLP_TRAINING
    assert flops_of(task.step) == MLP_TRAINING  # no hooks remain
    assert torch.equal(torch.get_rng_state(), state)
    assert {parameter.grad for parameter in task.model.parameters()} == {None}


def derivative() -> nn.Module:
    """A model whose forward pass computes derivatives with respect to its inputs."""

    def forward(model: Any, points: torch.Tensor) -> torch.Tensor:
        points = points.detach().requires_grad_()
        return torch.autograd.grad(model.layer(points).sum(), points, create_graph=True)[0]

    return Applied(forward, layer=nn.Linear(2, 4))


def checkpointed() -> nn.Module:
    return Applied(lambda model, inputs: checkpoint(model.inner, inputs, use_reentrant=False), inner=mlp())


@pytest.mark.parametrize(
    ("build", "shape", "trains", "flops"),
    [
        (mlp, (7, 2), False, MLP_FORWARD),
        # The layer, its derivative with respect to the points, and the gradient of that with respect to the weights.
        (derivative, (7, 2), True, 3 * 2 * 7 * 2 * 4),
        # The second forward pass stops before the last layer's product, whose output is not needed.
        (checkpointed, (7, 2), True, MLP_TRAINING + 2 * 7 * (2 * 30 + 30 * 50)),
    ],
)
def test_flops_by_hand(build: Callable[[], nn.Module], shape: tuple[int, ...], trains: bool, flops: int) -> None:
    batch = torch.randn(shape)
    task: Any = TinyTraining(build(), [batch]) if trains else TinyInference(build(), batch)
    assert flops_of(task.step) == flops


def moved_by(step: Callable[[], object]) -> float:
    columns = count_work(step, "eager", open_device("cpu"))
    return sum(columns["products_bytes_by_working_set"]) + sum(columns["others_bytes_by_working_set"])


def test_an_operator_moves_each_of_its_tensors_once() -> None:
    left, right, more = torch.randn(10, 20), torch.randn(20, 5), torch.randn(10, 20)
    assert moved_by(lambda: left @ right) == 4 * (10 * 20 + 20 * 5 + 10 * 5)
    assert moved_by(lambda: left + more) == 4 * 3 * 200
    assert moved_by(lambda: left.add_(more)) == 4 * 3 * 200  # two read, one written
    assert moved_by(lambda: left.copy_(more)) == 4 * 2 * 200
    assert moved_by(lambda: left.zero_()) == 4 * 200
    assert moved_by(lambda: left[:1].expand(10, 20) + more) == 4 * (20 + 2 * 200)
    assert moved_by(lambda: (left.t(), left[2:], left.view(-1), torch.empty(7))) == 0
    assert moved_by(lambda: left.to("meta")) == 0  # to another device


def test_products_and_other_operators_are_counted_apart_and_by_working_set() -> None:
    left, right = torch.randn(16, 16), torch.randn(16, 16)
    columns = count_work(lambda: (left @ right).add_(1), "eager", open_device("cpu"))
    moved = {name: values for name, values in columns.items() if "bytes" in name}
    sums = {name: {2**k: size for k, size in enumerate(values) if size} for name, values in moved.items()}
    assert sums == {"products_bytes_by_working_set": {2048: 3072.0}, "others_bytes_by_working_set": {2048: 2048.0}}
    assert columns["products_s"] >= 0 <= columns["others_s"]


def test_the_time_of_a_tiny_operator_is_subtracted() -> None:
    """A tiny sum takes 2 s, a tiny product 3 s; the step's product 7 s and its sum 9 s."""
    durations_s = iter([0, *[2, 3] * TINY_OPERATORS, 7, 9])
    calls = iter(range(10**6))
    now = [0.0]

    def mark() -> float:
        now[0] += next(durations_s) if next(calls) % 2 else 100
        return now[0]

    target = OpenDevice(torch.device("cpu"), lambda: None, mark=mark, between_s=lambda begin, end: end - begin)
    left = torch.randn(16, 16)
    columns = count_work(lambda: (left @ left) + left, "eager", target)
    assert (columns["products_s"], columns["others_s"]) == (7.0 - 3.0, 9.0 - 2.0)
    assert next(durations_s, None) is None


@pytest.mark.parametrize("count", [3, 500])
def test_times_of_operators_are_those_of_the_device_however_many_there_are(count: int) -> None:
    """The host takes 50 us per operator and 400 us for the other mode, the device 5 us, or 1 us if it is tiny."""
    durations_us = iter([1] * (1 + 2 * TINY_OPERATORS) + [5] * count)
    calls = iter(range(10**6))
    host_us, done_us = [0], [0]

    def mark() -> int:
        if next(calls) % 2:
            host_us[0] += 20
            done_us[0] = max(host_us[0], done_us[0]) + next(durations_us)
        else:
            host_us[0] += 30
        return max(host_us[0], done_us[0])

    def occupy() -> None:
        done_us[0] = max(host_us[0], done_us[0]) + 100

    def step() -> None:
        for _ in range(count):
            number.add_(1)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            host_us[0] += 400
            return func(*args, **(kwargs or {}))

    number = torch.zeros(16)
    queue = OpenDevice(torch.device("cpu"), lambda: None, mark=mark, between_s=lambda begin, end: end - begin)
    assert count_work(step, "eager", replace(queue, occupy=occupy), Watch())["others_s"] == count * (5 - 1)


@pytest.mark.parametrize("layer", [nn.LSTM(3, 4), lambda x: functional.bilinear(x, x, torch.ones(2, 3, 3))])
def test_a_step_with_products_that_torch_does_not_count_has_no_count(layer: Callable[[torch.Tensor], object]) -> None:
    inputs = torch.ones(5, 2, 3)
    assert count_work(lambda: layer(inputs), "eager", open_device("cpu"))["flops_per_step"] is None
    gates = nn.GRU(3, 4)
    assert flops_of(lambda: gates(inputs)) == 2 * 10 * (3 + 4) * 3 * 4


class Host:
    """A host that works for given times and calls operators, on a fake clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.number = torch.zeros(1)

    def clock_s(self) -> float:
        return self.now_s

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    def operate(self) -> None:
        self.number.add_(1)


@pytest.mark.parametrize(
    ("gaps_s", "stalls_s", "expected_s"),
    [
        ([0.1, 0.02, 0.003], [0] * GAP_STEPS, 0.123 - 3 * CALLING_S),
        ([0.9 * CALLING_S] * 100, [0] * GAP_STEPS, 0.0),
        ([0.25], [0, 7, 0, 1, 3], 0.25 - CALLING_S),
    ],
)
def test_host_work_is_the_time_between_operators_less_that_for_calling_them(
    gaps_s: list[float], stalls_s: list[float], expected_s: float
) -> None:
    host, stalls = Host(), iter(stalls_s)

    def step() -> None:
        host.work(next(stalls))
        for seconds in gaps_s:
            host.work(seconds)
            host.operate()

    assert host_work_s(step, host.clock_s) == pytest.approx(expected_s)

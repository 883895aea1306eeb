"""Every figure here is worked out by hand: float32 has 4 bytes, a step's peak is at a known operation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.memory.memory_split import Split, Subject, split_step

CPU = torch.device("cpu")
ROWS = 1000
RELU_BYTES = ROWS * 20 * 4
PARAMETER_BYTES = (10 * 20 + 20 + 20 * 5 + 5) * 4
SGD = partial(torch.optim.SGD, lr=0.01)


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, data: torch.Tensor, zero_first: bool = False
) -> Callable[[], None]:
    def step() -> None:
        if zero_first:
            optimizer.zero_grad()
        model(data).sum().backward()
        optimizer.step()
        if not zero_first:
            optimizer.zero_grad()

    return step


def split_training(
    model: nn.Module, make_optimizer: Callable[..., torch.optim.Optimizer], rows: int, **options: Any
) -> Split:
    """Train on resident data, three steps before the one that is split."""
    data, optimizer = torch.randn(rows, 10), make_optimizer(model.parameters())
    step = train(model, optimizer, data, **options)
    for _ in range(3):
        step()
    return split_step(Subject(step, model, (optimizer,), (data,), step), step, CPU)


def test_a_large_batch_peaks_where_the_activation_function_is_differentiated() -> None:
    """There the ReLU's output and two gradients of its size live; of the parameters' gradients, the last layer's.

    The first layer's output is not kept, the second's input is the ReLU's output, and the batch is resident.
    """
    assert split_training(two_layers(), SGD, ROWS) == Split(
        parameter_bytes=PARAMETER_BYTES,
        gradient_bytes=(20 * 5 + 5) * 4,
        optimizer_bytes=0,
        activation_bytes=RELU_BYTES,
        resident_bytes=ROWS * 10 * 4,
        added_bytes=RELU_BYTES + (20 * 5 + 5) * 4,
    )


def test_a_batch_that_is_not_resident_is_an_activation() -> None:
    model = two_layers()
    optimizer = SGD(model.parameters())

    def step() -> None:
        train(model, optimizer, torch.ones(ROWS, 10))()

    split = split_step(Subject(step, model, (optimizer,), (), step), step, CPU)
    assert (split.activation_bytes, split.resident_bytes) == (RELU_BYTES + ROWS * 10 * 4, 0)


def test_a_view_of_data_that_nobody_named_is_no_activation() -> None:
    model, data = two_layers(), torch.randn(5 * ROWS, 10)
    optimizer = SGD(model.parameters())

    def step() -> None:
        train(model, optimizer, data.narrow(0, ROWS, ROWS))()

    split = split_step(Subject(step, model, (optimizer,), (), step), step, CPU)
    assert (split.activation_bytes, split.resident_bytes) == (RELU_BYTES, 0)


@pytest.mark.parametrize(
    ("zero_first", "added_bytes"), [(False, PARAMETER_BYTES), (True, 0)], ids=["zeroed last", "zeroed first"]
)
def test_a_small_batch_peaks_where_all_gradients_are_there(zero_first: bool, added_bytes: int) -> None:
    """Gradients that the step before left count as there from the start."""
    split = split_training(two_layers(), SGD, 1, zero_first=zero_first)
    assert (split.gradient_bytes, split.activation_bytes) == (PARAMETER_BYTES, 0)
    assert split.added_bytes == added_bytes


@pytest.mark.parametrize(
    ("make_optimizer", "optimizer_bytes"),
    [
        (SGD, 0),
        (partial(SGD, momentum=0.9), PARAMETER_BYTES),
        (torch.optim.Adam, 2 * PARAMETER_BYTES + 4 * 4),  # two moments, and a counter for each of 4 parameters
        (partial(torch.optim.Adam, amsgrad=True), 3 * PARAMETER_BYTES + 4 * 4),
        (partial(torch.optim.AdamW, fused=True), 2 * PARAMETER_BYTES + 4 * 4),
        (partial(torch.optim.Adam, foreach=True), 2 * PARAMETER_BYTES + 4 * 4),
    ],
    ids=["SGD", "momentum", "Adam", "AMSGrad", "fused AdamW", "foreach Adam"],
)
@pytest.mark.parametrize("rows", [1, ROWS])
def test_optimizer_state(make_optimizer: Any, optimizer_bytes: int, rows: int) -> None:
    split = split_training(two_layers(), make_optimizer, rows)
    assert (split.parameter_bytes, split.optimizer_bytes) == (PARAMETER_BYTES, optimizer_bytes)


def test_optimizer_state_that_the_step_makes_counts_as_added() -> None:
    model, data = two_layers(), torch.randn(1, 10)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step = train(model, optimizer, data)
    split = split_step(Subject(step, model, (optimizer,), (data,), step), step, CPU)
    assert split.optimizer_bytes == 2 * PARAMETER_BYTES + 4 * 4
    assert split.added_bytes == split.optimizer_bytes + split.gradient_bytes


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False)
        self.second.weight = self.first.weight
        self.third = nn.Linear(10, 10, bias=False)
        self.third.weight = nn.Parameter(self.first.weight.detach().t())  # another parameter on the same storage

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.third(self.second(self.first(data)))
        return result


def test_shared_parameters_count_once() -> None:
    """Two parameters on one storage have a gradient each."""
    split = split_training(Tied(), SGD, 1)
    assert (split.parameter_bytes, split.gradient_bytes) == (400, 800)


@pytest.mark.parametrize("grad_mode", [torch.no_grad, torch.inference_mode])
def test_inference_keeps_nothing(grad_mode: type[torch.no_grad]) -> None:
    model, data = two_layers(), torch.randn(ROWS, 10)

    def step() -> None:
        with grad_mode():
            model(data)

    split = split_step(Subject(step, model, (), (data,), step), step, CPU)
    assert split == Split(PARAMETER_BYTES, 0, 0, 0, ROWS * 10 * 4, 0)


def test_buffers_are_resident_and_no_activations() -> None:
    """Batch normalisation keeps its input, and the mean and spread of each of 10 columns; its state is 3 buffers."""
    model, data = nn.BatchNorm1d(10), torch.randn(ROWS, 10)
    optimizer = SGD(model.parameters())
    step = train(model, optimizer, data)
    split = split_step(Subject(step, model, (optimizer,), (), step), step, CPU)
    assert split.resident_bytes == 2 * 10 * 4 + 8
    assert split.activation_bytes == ROWS * 10 * 4 + 2 * 10 * 4


def test_weights_that_autocast_copies_count_as_activations() -> None:
    """The peak is at the sum's float32 copy of the wide output; until then 2-byte copies are kept for the backward
    pass: of the batch, of the first layer's output and of the second's weight (the first's has no use there)."""
    model, data = nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 2000)), torch.randn(ROWS, 10)
    optimizer = SGD(model.parameters())

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(data).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    split = split_step(Subject(step, model, (optimizer,), (data,), step), step, CPU)
    assert split.activation_bytes == (ROWS * 10 + ROWS * 20 + 20 * 2000) * 2
    assert split.parameter_bytes == (10 * 20 + 20 + 20 * 2000 + 2000) * 4


def test_observing_keeps_nothing_alive() -> None:
    """Of three forward passes whose outputs are dropped, one ReLU's output exists at a time."""
    model, data = nn.Sequential(nn.Linear(10, 20), nn.ReLU()), torch.randn(ROWS, 10)

    def step() -> None:
        for _ in range(3):
            model(data)

    gc.disable()  # it would free what a cycle of references keeps
    try:
        split = split_step(Subject(step, model, (), (data,), step), step, CPU)
    finally:
        gc.enable()
    assert split.activation_bytes == RELU_BYTES


def test_the_devices_mark_places_the_peak() -> None:
    """A workspace in the forward pass, which only the device sees, moves the peak there: no gradients yet."""
    model, data, mark = two_layers(), torch.randn(ROWS, 10), [1]
    optimizer = SGD(model.parameters())

    def step() -> None:
        output = model(data)
        mark[0] = 2
        output.sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    split = split_step(Subject(step, model, (optimizer,), (data,), step), step, CPU, lambda: mark[0])
    assert (split.activation_bytes, split.gradient_bytes) == (RELU_BYTES, 0)


def test_another_devices_tensors_do_not_count() -> None:
    model, data = two_layers(), torch.randn(1, 10)
    optimizer = SGD(model.parameters())
    step = train(model, optimizer, data)
    split = split_step(Subject(step, model, (optimizer,), (data,), step), step, torch.device("meta"))
    assert split == Split(0, 0, 0, 0, 0, 0)


def test_frozen_parameters_have_no_gradients() -> None:
    model = two_layers()
    model[0].requires_grad_(False)
    split = split_training(model, SGD, 1)
    assert split.parameter_bytes == PARAMETER_BYTES
    assert split.gradient_bytes == (20 * 5 + 5) * 4


def test_parameters_of_the_optimizer_alone_count_too() -> None:
    model, scale = two_layers(), nn.Parameter(torch.ones(100))
    optimizer = SGD([*model.parameters(), scale])
    step = train(model, optimizer, torch.randn(1, 10))
    split = split_step(Subject(step, model, (optimizer,), (), step), step, CPU)
    assert split.parameter_bytes == PARAMETER_BYTES + 400


def test_the_observed_step_computes_the_same() -> None:
    results = []
    for observed in (False, True):
        torch.manual_seed(0)
        model, data = two_layers(), torch.randn(ROWS, 10)
        optimizer = torch.optim.Adam(model.parameters())
        step = train(model, optimizer, data)
        if observed:
            split_step(Subject(step, model, (optimizer,), (data,), step), step, CPU)
        else:
            step()
        results.append(model[0].weight.detach().clone())
    assert torch.equal(*results)


def test_a_step_that_runs_out_of_memory_says_so_and_leaves_no_hooks() -> None:
    model = two_layers()
    optimizer = SGD(model.parameters())

    def step() -> None:
        model(torch.randn(1, 10)).sum().backward()
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        split_step(Subject(step, model, (optimizer,), (), step), step, CPU)
    assert [parameter._post_accumulate_grad_hooks for parameter in model.parameters()] == [{}] * 4

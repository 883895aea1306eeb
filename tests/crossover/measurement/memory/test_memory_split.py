"""The split of a step's memory, worked out by hand: float32 has 4 bytes, and the peak is at a known operation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.memory.memory_pass import PARTS, Ledger, Split, Subject, split_step

CPU = torch.device("cpu")
ROWS = 1000
RELU_BYTES = ROWS * 20 * 4
PARAMETER_BYTES = (10 * 20 + 20 + 20 * 5 + 5) * 4
LAST_LAYER_BYTES = (20 * 5 + 5) * 4
SGD = partial(torch.optim.SGD, lr=0.01)


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))


def parts(split: Split) -> tuple[int, ...]:
    """Bytes of parameters, gradients, optimizer, activations and resident tensors."""
    return tuple(split.columns[f"{part}_bytes"] for part in PARTS)


def split_training(
    model: nn.Module,
    make_optimizer: Callable[..., torch.optim.Optimizer] = SGD,
    rows: int = ROWS,
    *,
    next_data: Callable[[], torch.Tensor] | None = None,
    zero_first: bool = False,
    warmup: int = 3,
) -> Split:
    """Split a training step on resident data, or on batches from `next_data`, after steps of warm-up."""
    data, optimizer = torch.randn(rows, 10), make_optimizer(model.parameters())

    def step() -> None:
        if zero_first:
            optimizer.zero_grad()
        model(next_data() if next_data else data).sum().backward()
        optimizer.step()
        if not zero_first:
            optimizer.zero_grad()

    for _ in range(warmup):
        step()
    resident = () if next_data else (data,)
    return split_step(Subject(step, model, optimizer, resident), CPU)


def test_a_large_batch_peaks_where_the_activation_function_is_differentiated() -> None:
    """At the peak, the ReLU's output, two gradients of its size and the last layer's parameter gradients exist."""
    split = split_training(two_layers())
    assert parts(split) == (PARAMETER_BYTES, LAST_LAYER_BYTES, 0, RELU_BYTES, ROWS * 10 * 4)
    assert split.added_bytes == RELU_BYTES + LAST_LAYER_BYTES


@pytest.mark.parametrize("is_view", [False, True])
def test_a_batch_is_an_activation_unless_it_is_a_view_of_other_data(is_view: bool) -> None:
    data = torch.randn(5 * ROWS, 10)
    next_data = (lambda: data.narrow(0, ROWS, ROWS)) if is_view else (lambda: torch.ones(ROWS, 10))
    split = split_training(two_layers(), next_data=next_data)
    assert parts(split)[3:] == (RELU_BYTES + (0 if is_view else ROWS * 10 * 4), 0)


@pytest.mark.parametrize(("zero_first", "added_bytes"), [(False, PARAMETER_BYTES), (True, 0)])
def test_a_small_batch_peaks_where_all_gradients_exist(zero_first: bool, added_bytes: int) -> None:
    """Gradients left by the previous step count from the start."""
    split = split_training(two_layers(), rows=1, zero_first=zero_first)
    assert parts(split)[1:4] == (PARAMETER_BYTES, 0, 0)
    assert split.added_bytes == added_bytes


@pytest.mark.parametrize(
    ("make_optimizer", "optimizer_bytes"),
    [
        (partial(SGD, momentum=0.9), PARAMETER_BYTES),
        (torch.optim.Adam, 2 * PARAMETER_BYTES + 4 * 4),  # two moments, and a counter for each of 4 parameters
        (partial(torch.optim.AdamW, fused=True), 2 * PARAMETER_BYTES + 4 * 4),
    ],
    ids=["momentum", "Adam", "fused AdamW"],
)
@pytest.mark.parametrize("rows", [1, ROWS])
def test_optimizer_state(make_optimizer: Any, optimizer_bytes: int, rows: int) -> None:
    split = split_training(two_layers(), make_optimizer, rows)
    assert (parts(split)[0], parts(split)[2]) == (PARAMETER_BYTES, optimizer_bytes)


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


def test_sparse_gradients_count_as_their_indices_and_values() -> None:
    """3 rows of 10 numbers of 4 bytes, each with an index of 8 bytes. Dense gradients would have 100 rows."""
    model, rows = nn.Embedding(100, 10, sparse=True), torch.tensor([1, 2, 5])
    optimizer = torch.optim.SparseAdam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(rows).sum().backward()

    step()
    columns = split_step(Subject(step, model, optimizer, (rows,)), CPU).columns
    assert columns["gradient_bytes"] == 3 * 10 * 4 + 3 * 8
    assert columns["parameter_bytes"] == 100 * 10 * 4


def test_shared_parameters_count_once() -> None:
    assert parts(split_training(Tied(), rows=1))[:2] == (400, 800)


def test_frozen_parameters_have_no_gradients_and_parameters_outside_of_the_model_count() -> None:
    model, scale = two_layers(), nn.Parameter(torch.ones(100))
    model[0].requires_grad_(False)
    split = split_training(model, lambda parameters: SGD([*parameters, scale]), 1)
    assert parts(split)[:2] == (PARAMETER_BYTES + 400, LAST_LAYER_BYTES)


@pytest.mark.parametrize("grad_mode", [torch.no_grad, torch.inference_mode])
def test_an_inference_has_no_activations(grad_mode: type[torch.no_grad]) -> None:
    model, data = two_layers(), torch.randn(ROWS, 10)

    def step() -> None:
        with grad_mode():
            model(data)

    split = split_step(Subject(step, model, None, (data,)), CPU)
    assert (parts(split), split.added_bytes) == ((PARAMETER_BYTES, 0, 0, 0, ROWS * 10 * 4), 0)


def test_buffers_are_resident() -> None:
    """Batch normalisation keeps its input, and the mean and spread of each of 10 columns; it has 3 buffers."""
    data = torch.randn(ROWS, 10)
    split = split_training(nn.BatchNorm1d(10), next_data=lambda: data, warmup=0)
    assert parts(split)[3:] == (ROWS * 10 * 4 + 2 * 10 * 4, 2 * 10 * 4 + 8)


def test_autocasts_copies_of_weights_are_activations() -> None:
    """The peak is at the sum's float32 copy of the wide output. By then the batch, the first layer's output and the
    second layer's weight are kept in 2 bytes for the backward pass, which does not need the first layer's weight.
    """

    class Mixed(nn.Sequential):
        def forward(self, data: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                result: torch.Tensor = super().forward(data).sum()
            return result

    split = split_training(Mixed(nn.Linear(10, 20), nn.Linear(20, 2000)), warmup=0)
    assert parts(split)[3] == (ROWS * 10 + ROWS * 20 + 20 * 2000) * 2
    assert parts(split)[0] == (10 * 20 + 20 + 20 * 2000 + 2000) * 4


def test_an_observed_step_frees_its_outputs() -> None:
    """In three forward passes whose outputs are dropped, only one ReLU output exists at a time."""
    model, data = nn.Sequential(nn.Linear(10, 20), nn.ReLU()), torch.randn(ROWS, 10)

    def step() -> None:
        for _ in range(3):
            model(data)

    gc.disable()  # otherwise it might free outputs in a reference cycle
    try:
        split = split_step(Subject(step, model, None, (data,)), CPU)
    finally:
        gc.enable()
    assert parts(split)[3] == RELU_BYTES


def test_the_devices_high_water_mark_sets_the_moment_of_the_peak() -> None:
    """A workspace that only the device counts moves the peak into the forward pass, before any gradient exists."""
    model, data, mark = two_layers(), torch.randn(ROWS, 10), [1]

    def step() -> None:
        output = model(data)
        mark[0] = 2
        output.sum().backward()

    split = split_step(Subject(step, model, None, (data,)), CPU, lambda: mark[0])
    assert parts(split)[1:4] == (0, 0, RELU_BYTES)


def test_a_step_that_fails_leaves_no_hooks() -> None:
    model = two_layers()

    def step() -> None:
        model(torch.randn(1, 10)).sum().backward()
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        split_step(Subject(step, model), CPU)
    assert [parameter._post_accumulate_grad_hooks for parameter in model.parameters()] == [{}] * 4


def bytes_of(ledger: Ledger, moment: int) -> dict[str, int]:
    return {role: count for role, count in ledger.bytes_at(moment).items() if count}


def test_a_storage_counts_once_until_its_last_tensor_is_freed() -> None:
    ledger = Ledger("cpu")
    whole = torch.empty(100)
    part = whole[:3]
    ledger.see([whole, whole.view(10, 10), part, whole.detach(), "no tensor", None])
    ledger.tick()
    del whole
    ledger.tick()
    del part
    ledger.tick()
    assert [bytes_of(ledger, moment) for moment in range(3)] == [{"temporary": 400}, {"temporary": 400}, {}]

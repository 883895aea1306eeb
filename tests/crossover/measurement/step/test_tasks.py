"""The parts of a task's step, and their order."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from crossover.config.words import PRECISIONS
from crossover.measurement.step.precision import arithmetic_of
from tiny_tasks import CPU, TinyInference, TinyTraining, linear


def test_the_order_of_a_training_step(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TinyTraining(linear(3.0), [torch.tensor([[2.0], [4.0]]), torch.tensor([[10.0]])])
    (weight,) = task.model.parameters()
    weight.register_hook(lambda _: task.events.append("backward"))
    update, clear = task.optimizer.step, task.optimizer.zero_grad
    monkeypatch.setattr(task.optimizer, "step", lambda: (task.events.append("update"), update()))
    monkeypatch.setattr(task.optimizer, "zero_grad", lambda: (task.events.append("clear"), clear()))
    task.step()
    assert task.events == ["inputs", "forward", "observe 1", "backward", "update", "clear", "end"]
    assert weight.item() == 0  # 3 less the mean of the inputs
    assert weight.grad is None
    task.step()
    assert weight.item() == -10


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "tf32"])
def test_forward_runs_in_the_precision_and_backward_outside_of_autocast(precision: str) -> None:
    arithmetic = arithmetic_of(precision, CPU)
    seen: dict[str, object] = {}

    def forward(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = model(inputs)
        seen["forward"] = (outputs.dtype, torch.is_autocast_enabled("cpu"))
        outputs.register_hook(lambda _: seen.update(backward=torch.is_autocast_enabled("cpu")))
        return (outputs.float().mean() / 2,)  # its gradient, 0.5, fits into fp16 when scaled by 2^16

    task = TinyTraining(linear(3.0), [torch.ones(4, 1)], arithmetic, forward)
    task.step()
    autocast = precision.startswith("amp")
    assert seen == {"forward": (arithmetic.autocast_dtype or arithmetic.dtype, autocast), "backward": False}
    assert {tensor.dtype for tensor in (*task.model.parameters(), *task.resident)} == {arithmetic.dtype}
    assert next(task.model.parameters()).item() == 2.5


def small_loss(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A loss whose gradient, 2^-25, is too small for fp16, in which autocast computes it."""
    return ((model(inputs).float() * 2.0**-25).sum(),)


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_the_gradients_of_equal_parts_add_up_to_those_of_the_batch(precision: str) -> None:
    task = TinyTraining(linear(0.0), [torch.ones(4, 1)], arithmetic_of(precision, CPU), small_loss)
    for inputs in (1.0, 2.0, 3.0, 6.0):
        task.add_gradients(torch.full((1, 1), inputs), parts=4)
    (weight,) = task.model.parameters()
    scale = task.arithmetic.scaler.get_scale() if task.arithmetic.scaler else 1.0
    assert weight.grad is not None
    assert weight.grad.item() == 3 * 2.0**-25 * scale  # the mean of the inputs, times the factor of the loss
    task.use_gradients()
    assert (weight.item(), weight.grad) == (-3 * 2.0**-25, None)


def test_an_inference_records_no_gradients_and_drops_nothing() -> None:
    model = nn.Sequential(linear(3.0), nn.Dropout(0.999))
    task = TinyInference(model, torch.full((50, 1), 2.0))
    task.step()
    (outputs,) = task.seen
    assert outputs.flatten().tolist() == [6.0] * 50
    assert not outputs.requires_grad
    assert not task.model.training
    assert torch.is_grad_enabled()

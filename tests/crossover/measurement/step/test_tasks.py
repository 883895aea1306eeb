"""The parts of a step, in their order."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from crossover.config.words import PRECISIONS
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.step.tasks import GradientTask
from tiny_tasks import CPU, FP32, TinyInference, TinyTraining, linear, mean_output


def test_a_training_step_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TinyTraining(linear(3.0), [torch.tensor([[2.0], [4.0]])])
    (weight,) = task.model.parameters()
    weight.register_hook(lambda _: task.events.append("backward"))
    update, clear = task.optimizer.step, task.optimizer.zero_grad

    def logged_update() -> None:
        task.events.append(f"update by {weight.grad.item():g}")
        update()

    def logged_clear() -> None:
        task.events.append("clear")
        clear()

    monkeypatch.setattr(task.optimizer, "step", logged_update)
    monkeypatch.setattr(task.optimizer, "zero_grad", logged_clear)
    task.step()
    assert task.events == ["inputs", "forward", "observe 1", "backward", "update by 3", "clear", "end"]
    assert weight.item() == 0  # 3 less the mean of the inputs
    assert weight.grad is None


def test_steps_go_through_the_batches() -> None:
    task = TinyTraining(linear(0.0), [torch.tensor([[1.0]]), torch.tensor([[10.0]])])
    weights = []
    for _ in range(3):
        task.step()
        weights.append(next(task.model.parameters()).item())
    assert weights == [-1, -11, -12]


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "tf32"])
def test_a_training_computes_forward_in_its_precision_and_backward_outside_of_autocast(precision: str) -> None:
    arithmetic = arithmetic_of(precision, CPU)
    seen: dict[str, object] = {}

    def forward(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = model(inputs)
        seen["forward"] = (outputs.dtype, torch.is_autocast_enabled("cpu"))
        outputs.register_hook(lambda _: seen.update(backward=torch.is_autocast_enabled("cpu")))
        return (outputs.float().mean() / 2,)  # its gradient, 0.5, is within fp16 when scaled by 2^16

    task = TinyTraining(linear(3.0), [torch.ones(4, 1)], arithmetic, forward)
    task.step()
    autocast = precision.startswith("amp")
    assert seen == {"forward": (arithmetic.autocast_dtype or arithmetic.dtype, autocast), "backward": False}
    assert {tensor.dtype for tensor in (*task.model.parameters(), *task.resident)} == {arithmetic.dtype}
    assert next(task.model.parameters()).item() == 2.5


class TinyPasses(GradientTask):
    """Passes over one batch without an optimizer."""

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        return self.resident

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return mean_output(model, *inputs)


def test_a_step_without_an_optimizer_computes_gradients_and_drops_them() -> None:
    task = TinyPasses(linear(3.0), FP32, (torch.tensor([[2.0], [4.0]]),))
    (weight,) = task.model.parameters()
    seen: list[float] = []
    weight.register_hook(lambda gradient: seen.append(gradient.item()))
    task.step()
    task.step()
    assert seen == [3, 3]  # the mean of the inputs
    assert weight.item() == 3
    assert weight.grad is None
    assert task.optimizer is None


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_the_gradients_of_equal_parts_add_up_to_the_batchs(precision: str) -> None:
    task = TinyTraining(linear(0.0), [torch.ones(4, 1)], arithmetic_of(precision, CPU), small_loss)
    for inputs in (1.0, 2.0, 3.0, 6.0):
        task.add_gradients(torch.full((1, 1), inputs), parts=4)
    (weight,) = task.model.parameters()
    scale = task.arithmetic.scaler.get_scale() if task.arithmetic.scaler else 1.0
    assert weight.grad is not None
    assert weight.grad.item() == 3 * 2.0**-25 * scale  # the mean of the inputs, times the factor of the loss
    task.use_gradients()
    assert weight.item() == -3 * 2.0**-25
    assert weight.grad is None


def small_loss(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Its gradient, 2^-25, is too small for fp16, in which autocast computes it."""
    return ((model(inputs).float() * 2.0**-25).sum(),)


def test_amp_fp16_scales_on_the_cpu_too() -> None:
    def weight_after_a_step(**changed: None) -> float:
        arithmetic = replace(arithmetic_of("amp-fp16", CPU), **changed)
        task = TinyTraining(linear(0.0), [torch.ones(1, 1)], arithmetic, small_loss, learning_rate=2.0**25)
        task.step()
        return next(task.model.parameters()).item()

    assert weight_after_a_step() == -1
    assert weight_after_a_step(scaler=None) == 0


def test_an_inference_makes_no_graph_and_drops_nothing() -> None:
    model = nn.Sequential(linear(3.0), nn.Dropout(0.999))
    task = TinyInference(model, torch.full((50, 1), 2.0))
    task.step()
    (outputs,) = task.seen
    assert outputs.flatten().tolist() == [6.0] * 50
    assert outputs.grad_fn is None
    assert not outputs.requires_grad
    assert not task.model.training
    assert task.optimizer is None
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("amp-bf16", torch.bfloat16)])
def test_an_inference_uses_autocast(precision: str, dtype: torch.dtype) -> None:
    task = TinyInference(linear(3.0), torch.ones(1, 1), arithmetic_of(precision, CPU))
    task.step()
    assert task.seen[0].dtype == dtype


def test_labels_keep_their_type() -> None:
    task = TinyInference(linear(1.0), torch.tensor([1, 0]), replace(FP32, dtype=torch.float64))
    assert task.resident[0].dtype == torch.int64
    assert next(task.model.parameters()).dtype == torch.float64

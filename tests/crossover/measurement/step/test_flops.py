"""Operations of a step against arithmetic by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from crossover.measurement.step.devices import open_device
from crossover.measurement.step.execution import prepare
from crossover.measurement.step.flops import count_work
from crossover.measurement.step.precision import arithmetic_of
from tiny_tasks import CPU, TinyInference, TinyTraining

MLP_FORWARD = 2 * 7 * (2 * 30 + 30 * 50 + 50 * 3)
MLP_TRAINING = 3 * MLP_FORWARD - 2 * 7 * 2 * 30  # nobody needs the gradient of the inputs


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 3))


def flops_of(step: Callable[[], None], execution: str = "eager") -> int:
    return int(count_work(step, execution, open_device("cpu"))["flops_per_step"])


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "amp-fp16", "bf16", "fp64"])
def test_linear_layers(precision: str) -> None:
    task = TinyTraining(mlp(), [torch.randn(7, 2)], arithmetic_of(precision, CPU))
    state = torch.get_rng_state()
    assert flops_of(task.step) == MLP_TRAINING
    assert flops_of(task.step) == MLP_TRAINING  # and none are left over
    assert torch.equal(torch.get_rng_state(), state)
    assert {parameter.grad for parameter in task.model.parameters()} == {None}


def test_an_inference_has_no_backward_pass() -> None:
    assert flops_of(TinyInference(mlp(), torch.randn(7, 2)).step) == MLP_FORWARD


def test_a_convolution() -> None:
    """4 images of 3x10x10, 5 filters of 3x3: 8x8 outputs, each of 27 products; as much for the weights' gradient."""
    task = TinyTraining(nn.Conv2d(3, 5, 3), [torch.randn(4, 3, 10, 10)])
    assert flops_of(task.step) == 2 * (2 * 4 * 5 * 8 * 8 * 27)


class Attention(nn.Module):
    """Nothing but attention among the inputs' heads, and one weight, so that there is a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        heads = inputs * self.scale
        return functional.scaled_dot_product_attention(heads, heads, heads)


@pytest.mark.parametrize("trains", [True, False])
def test_fused_attention_counts_on_the_cpu_too(trains: bool) -> None:
    """2 sequences of 16, 4 heads of 8: queries by keys and weights by values, forward; five such products, backward."""
    product = 2 * 2 * 4 * 16 * 16 * 8
    batch = torch.randn(2, 4, 16, 8)
    task: Any = TinyTraining(Attention(), [batch]) if trains else TinyInference(Attention(), batch)
    assert flops_of(task.step) == (7 if trains else 2) * product


def test_the_forward_pass_that_a_checkpoint_repeats_is_counted() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp()

        def forward(self, inputs: torch.Tensor) -> Any:
            return checkpoint(self.inner, inputs, use_reentrant=False)

    task = TinyTraining(Checkpointed(), [torch.randn(7, 2)])
    # The second forward pass ends before the last layer's product, whose output nobody needs.
    assert flops_of(task.step) == MLP_TRAINING + 2 * 7 * (2 * 30 + 30 * 50)


@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning")
def test_a_compiled_cell_counts_its_eager_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code may call kernels that no counter sees."""
    compiled_runs: list[int] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        return lambda *arguments: (compiled_runs.append(1), graph.forward(*arguments))[1]

    torch._dynamo.reset()
    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda forward, **options: real(forward, backend=backend, **options))
    task = TinyInference(mlp(), torch.randn(7, 2))
    prepare(task, "compile").step()
    assert compiled_runs == [1]
    assert flops_of(task.step, "compile") == MLP_FORWARD
    assert compiled_runs == [1]
    torch._dynamo.reset()

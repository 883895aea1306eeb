"""Small tasks, and tasks of shipped workloads, for tests on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.devices import open_device
from crossover.measurement.step.operators import count_work
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import CheckResult, InferenceTask, TrainingTask
from crossover.measurement.workloads import build_model, build_task

CPU = torch.device("cpu")
FP32 = Arithmetic(CPU)

Forward = Callable[..., tuple[torch.Tensor, ...]]


class Applied(nn.Module):
    """A model with named layers and parameters, whose forward pass is a given function of the model and its inputs."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any, **named_inputs: Any) -> Any:
        return self.function(self, *inputs, **named_inputs)


def mean_output(model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A loss whose gradients are worked out by hand."""
    return (model(*inputs).float().mean(),)


def squared(model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (model(inputs).square().mean(),)


class TinyTraining(TrainingTask):
    """Trains a model on the batches of a list in turn, and records its actions in `events`."""

    def __init__(
        self,
        model: nn.Module,
        batches: list[torch.Tensor],
        arithmetic: Arithmetic = FP32,
        forward: Forward = mean_output,
        learning_rate: float = 1.0,
    ) -> None:
        super().__init__(model, arithmetic, tuple(batches))
        self.loss_of = forward
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=learning_rate)
        self.batch = 0
        self.events: list[str] = []

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        self.events.append("inputs")
        return (self.resident[self.batch % len(self.resident)],)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.events.append("forward")
        return self.loss_of(model, *inputs)

    def observe(self, *results: torch.Tensor) -> None:
        self.events.append(f"observe {len(results)}")

    def end_step(self) -> None:
        self.events.append("end")
        self.batch += 1


class TinyInference(InferenceTask):
    def __init__(self, model: nn.Module, batch: torch.Tensor, arithmetic: Arithmetic = FP32) -> None:
        super().__init__(model, arithmetic, (batch,))
        self.seen: list[torch.Tensor] = []

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)

    def observe(self, *results: torch.Tensor) -> None:
        self.seen.extend(results)


def linear(weight: float) -> nn.Linear:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, weight)
    return layer


def cell_of(workload: str, size: int, batch_size: int = 2, **values: str) -> Cell:
    plain = {"protocol": "resident", "precision": "fp32", "execution": "eager", "device": "cpu"} | values
    return Cell("study", workload, size=size, batch_size=batch_size, **plain)


def task_of(cell: Cell, data: Mapping[str, torch.Tensor] | None = None) -> Any:
    """A cell's task in its precision, from the same weights each time."""
    torch.manual_seed(0)
    return build_task(cell, data or {}, arithmetic_of(cell.precision, CPU))


def answer_of(cell: Cell, task: Any) -> CheckResult:
    return compare_with_reference(task, lambda: build_model(cell), cell.precision)


def flops_of(step: Callable[[], None]) -> int:
    return int(count_work(step, "eager", open_device("cpu"))["flops_per_step"])


def same_weights(model: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters(), strict=True))

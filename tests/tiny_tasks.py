"""Small tasks and arithmetics, for what runs, compiles, captures and checks any task."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask, TrainingTask

CPU = torch.device("cpu")
FP32 = Arithmetic(CPU)

Forward = Callable[..., tuple[torch.Tensor, ...]]


def mean_output(model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A loss whose gradients are worked out by hand."""
    return (model(*inputs).float().mean(),)


class TinyTraining(TrainingTask):
    """Trains any model on the batches of a list, one after the other; says in `events` what it does."""

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
    """Runs a model on one batch; keeps what came out."""

    def __init__(self, model: nn.Module, batch: torch.Tensor, arithmetic: Arithmetic = FP32) -> None:
        super().__init__(model, arithmetic, (batch,))
        self.seen: list[torch.Tensor] = []

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        return self.resident

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)

    def observe(self, *results: torch.Tensor) -> None:
        self.seen.extend(results)


def linear(weight: float) -> nn.Linear:
    """One weight, no bias."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, weight)
    return layer

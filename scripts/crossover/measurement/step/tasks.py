"""Tasks: a workload's step in the parts that timing, CUDA graphs and the numerical check need.

A step takes inputs (`next_inputs`), runs the device's work on them (`run`, which calls `forward`), then the host's
(`end_step`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.trees import map_tensors


def trainable_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


class Task(ABC):
    """A model on its device and the step to time."""

    cycle_steps: int = 1
    """Steps after which the work repeats; a timed block holds whole cycles, so that all blocks do the same work."""
    reads_back: bool = False
    """Whether the host reads results within a step, which a CUDA graph cannot hold."""
    optimizer: torch.optim.Optimizer | None = None
    checked_rows: int = 32
    """Rows that the numerical check compares where the whole batch would take long in double precision."""
    batched: bool = True
    """Whether each row of each input is a sample."""
    not_comparable: str | None = None
    """Why the numerical check is left out, for a step whose result cannot be reproduced."""
    samples_taken: int | None = None
    """Samples of all batches so far; None if each has the cell's batch size."""
    notes: tuple[str, ...] = ()
    """Remarks on the step for readers of the row."""
    switches: Mapping[str, Any] = MappingProxyType({})
    """Torch's switches that the task sets, by their names in `conditions.read_switches`."""
    flags: tuple[str, ...] = ()
    """Names in `config.words.FLAGS`."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        self.arithmetic = arithmetic
        self.model = arithmetic.place_model(model)
        self.resident = tuple(arithmetic.place(tensor) for tensor in resident)
        """Tensors that stay on the device."""

    def next_inputs(self) -> tuple[Any, ...]:
        """The next batch on the device, a pytree; by default always the resident tensors."""
        return self.resident

    def place(self, batch: Any) -> Any:
        """A batch on the device, in the task's arithmetic."""
        return map_tensors(self.arithmetic.place, batch)

    def nth_batch(self, number: int, batch_size: int) -> tuple[torch.Tensor, ...]:
        """A batch of the resident tensors in the dataset's order, counted from 0."""
        return tuple(tensor.narrow(0, number * batch_size, batch_size) for tensor in self.resident)

    @abstractmethod
    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        """The model's results for a batch, all of which `observe` receives.

        A training's first is the loss (a scalar), which is checked; an inference's are the outputs, all checked.
        """

    def observe(self, *results: torch.Tensor) -> None:  # noqa: B027 - most have nothing to do
        """Use the results of the forward pass within the step."""

    @abstractmethod
    def run(self, *inputs: Any) -> None:
        """The device's work of one step."""

    def end_step(self) -> None:  # noqa: B027
        """The host's work at the end of a step."""

    def step(self) -> None:
        self.run(*self.next_inputs())
        self.end_step()

    def own_errors(self) -> dict[str, float] | None:
        """Errors as the workload's source defines them: `max_abs_error`, `max_relative_error` or both."""
        return None


class GradientTask(Task):
    """Forward and backward pass; the gradients are dropped."""

    def run(self, *inputs: Any) -> None:
        self.add_gradients(*inputs)
        self.use_gradients()

    def add_gradients(self, *inputs: Any, parts: int = 1) -> None:
        """Both passes over a batch, or over one of its equal `parts`, whose gradients add up to the batch's."""
        with self.arithmetic.autocast():
            results = self.forward(self.model, *inputs)
        self.observe(*results)
        self.arithmetic.backward(results[0] if parts == 1 else results[0] / parts)

    def use_gradients(self) -> None:
        self.model.zero_grad(set_to_none=True)


class TrainingTask(GradientTask):
    """A training step: forward, backward, optimizer."""

    optimizer: torch.optim.Optimizer

    def use_gradients(self) -> None:
        self.arithmetic.step(self.optimizer)
        self.optimizer.zero_grad()


class InferenceTask(Task):
    """An inference pass: evaluation mode, no gradients."""

    takes_gradients: bool = False
    """Whether the forward pass takes derivatives itself, and needs gradients switched on."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__(model.eval(), arithmetic, resident)

    def run(self, *inputs: Any) -> None:
        self.observe(*self._results(*inputs))

    def next_host_inputs(self) -> tuple[Any, ...]:
        """The next batch in pageable host memory; raises NotImplementedError if the workload does not offer it."""
        raise NotImplementedError

    def step_with_transfers(self) -> None:
        """A step that copies its batch from the host and its result back, which waits for the device."""
        results = self._results(*self.place(self.next_host_inputs()))
        self.observe(*results)
        for result in results:
            result.to("cpu")
        self.end_step()

    def _results(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        with torch.set_grad_enabled(self.takes_gradients), self.arithmetic.autocast():
            return self.forward(self.model, *inputs)

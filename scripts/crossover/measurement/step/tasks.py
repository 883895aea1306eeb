"""Tasks: a workload on its device, in the parts that timing, CUDA graphs and the numerical check need.

A workload's class says where a step's inputs come from (`next_inputs`) and what is computed from them (`forward`). A
step takes inputs, runs the device's work (`run`), then the host's (`end_step`).
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
    """How many numbers a training changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


class Task(ABC):
    """A model on its device and the step to time."""

    cycle_steps: int = 1
    """Steps after which the work repeats; a block holds whole cycles, so that all blocks do the same work."""
    reads_back: bool = False
    """Whether the host reads results in the middle of a step, which no CUDA graph can hold."""
    optimizer: torch.optim.Optimizer | None = None
    checked_rows: int = 32
    """Rows that the numerical check compares where the whole batch would take the CPU long in double precision."""
    batched: bool = True
    """Whether the rows of each input are those of the batch."""
    not_comparable: str | None = None
    """Why the numerical check is left out, for a step whose answer a second run would not repeat."""
    samples_taken: int | None = None
    """Samples of all batches taken so far; None if each has as many as the cell's batch size says."""
    notes: tuple[str, ...] = ()
    """What a reader of the row must know of the step."""
    switches: Mapping[str, Any] = MappingProxyType({})
    """Switches of torch that the task sets for its steps, by the names of `conditions.read_switches`."""
    flags: tuple[str, ...] = ()
    """Names in `config.words.FLAGS`."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        self.arithmetic = arithmetic
        self.model = arithmetic.place_model(model)
        self.resident = tuple(arithmetic.place(tensor) for tensor in resident)
        """Tensors of the dataset that stay on the device."""

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
        """The model's results for a batch: of a training first the loss (a scalar), which is checked; of an inference
        all outputs, which are all checked. `observe` gets all of them.
        """

    def observe(self, *results: torch.Tensor) -> None:  # noqa: B027 - most have nothing to do
        """What a step does with the results of its forward pass."""

    @abstractmethod
    def run(self, *inputs: Any) -> None:
        """The device's work of one step."""

    def end_step(self) -> None:  # noqa: B027
        """What the host does at the end of a step."""

    def step(self) -> None:
        self.run(*self.next_inputs())
        self.end_step()

    def own_errors(self) -> dict[str, float] | None:
        """The error as the workload's source defines it: `max_abs_error`, `max_relative_error` or both."""
        return None


class GradientTask(Task):
    """Forward and backward pass; the gradients are dropped at the end of the step."""

    def run(self, *inputs: Any) -> None:
        """Both passes over a batch, then the use of the gradients."""
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
    """Whether the forward pass itself takes derivatives, and so needs gradients switched on."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__(model.eval(), arithmetic, resident)

    def run(self, *inputs: Any) -> None:
        """The forward pass."""
        self.observe(*self._results(*inputs))

    def next_host_inputs(self) -> tuple[Any, ...]:
        """The next batch in pageable host memory; raises NotImplementedError if the workload does not offer it."""
        raise NotImplementedError

    def step_with_transfers(self) -> None:
        """One step that copies its batch from the host and its result back, and so waits for the device."""
        results = self._results(*self.place(self.next_host_inputs()))
        self.observe(*results)
        for result in results:
            result.to("cpu")
        self.end_step()

    def _results(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        with torch.set_grad_enabled(self.takes_gradients), self.arithmetic.autocast():
            return self.forward(self.model, *inputs)

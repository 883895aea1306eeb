"""Tasks: a workload on its device, cut into the parts that timing, CUDA graphs and the numerical check need.

A workload's class says where a step's inputs come from (`next_inputs`) and what is computed from them (`forward`);
the rest has defaults. One step is then: inputs, device work (`run`), what the host does at its end (`end_step`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import nn

from crossover.measurement.step.precision import Arithmetic


class Task(ABC):
    """A model on its device and the step to time."""

    cycle_steps: int = 1
    """Steps after which the work repeats; a block holds whole cycles, so that all blocks do the same work."""
    reads_back: bool = False
    """Whether the host reads results in the midst of a step, which no CUDA graph can hold."""
    optimizer: torch.optim.Optimizer | None = None
    checked_rows: int = 32
    """Rows of a batch that the numerical check compares, a training's first ones, an inference's spread over the batch:
    enough to see a wrong kernel, few enough for a CPU."""
    not_comparable: str | None = None
    """Why the numerical check is to be left out, where a step has no answer that a second run would give again."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        self.arithmetic = arithmetic
        self.model = model.to(arithmetic.device, arithmetic.dtype)
        self.resident = tuple(arithmetic.place(tensor) for tensor in resident)
        """The dataset's tensors that lie on the device."""

    @abstractmethod
    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        """The next batch on the device; every tensor has the batch as its first dimension."""

    @abstractmethod
    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What the model makes of a batch. First the result that is checked: a training's loss (a scalar), an
        inference's outputs, a row for each of the batch's that depends on no other; then whatever else `observe` needs.
        """

    def observe(self, *results: torch.Tensor) -> None:  # noqa: B027 - most have nothing to do
        """What a step does with the results of its forward pass."""

    @abstractmethod
    def run(self, *inputs: torch.Tensor) -> None:
        """The device's work of one step."""

    def end_step(self) -> None:  # noqa: B027
        """What the host does at the end of a step."""

    def step(self) -> None:
        """One step."""
        self.run(*self.next_inputs())
        self.end_step()

    def own_errors(self) -> dict[str, float] | None:
        """The workload's own measure of error, after its source: `max_abs_error` and `max_relative_error`, or either;
        None where it has none.
        """
        return None


class GradientTask(Task):
    """Forward and backward pass; the gradients are dropped at the end of the step."""

    def run(self, *inputs: torch.Tensor) -> None:
        """Both passes over a batch, then what becomes of the gradients; they are gone at the end."""
        self.add_gradients(*inputs)
        self.use_gradients()

    def add_gradients(self, *inputs: torch.Tensor, parts: int = 1) -> None:
        """Forward pass, what is observed of it, backward pass. For one of several equal `parts` of a batch, its share:
        the gradients of all parts add up to the batch's.
        """
        with self.arithmetic.autocast():
            results = self.forward(self.model, *inputs)
        self.observe(*results)
        self.arithmetic.backward(results[0] if parts == 1 else results[0] / parts)

    def use_gradients(self) -> None:
        """Drop them."""
        self.model.zero_grad(set_to_none=True)


class TrainingTask(GradientTask):
    """A training step: forward, backward, optimizer."""

    optimizer: torch.optim.Optimizer

    def use_gradients(self) -> None:
        """Update the weights, then drop the gradients."""
        self.arithmetic.step(self.optimizer)
        self.optimizer.zero_grad()


class InferenceTask(Task):
    """An inference pass: evaluation mode, no gradients."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__(model.eval(), arithmetic, resident)

    def run(self, *inputs: torch.Tensor) -> None:
        """Forward pass and what is observed of it."""
        self.observe(*self._results(*inputs))

    def next_host_inputs(self) -> tuple[torch.Tensor, ...]:
        """The next batch in pageable host memory; raises NotImplementedError where a workload does not offer it."""
        raise NotImplementedError

    def step_with_transfers(self) -> None:
        """One step whose batch comes from host memory and whose result goes back there, which waits for it."""
        results = self._results(*map(self.arithmetic.place, self.next_host_inputs()))
        self.observe(*results)
        results[0].to("cpu")
        self.end_step()

    def _results(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad(), self.arithmetic.autocast():
            return self.forward(self.model, *inputs)

"""Tasks: a workload's step in the parts that timing, CUDA graphs and the numerical check need.

A step takes inputs (`next_inputs`), runs the device's work on them (`run`, which calls `forward`), then the host's
(`end_step`). If batches are in host memory (`host_batches`), it also copies them to the device and the results back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.trees import Change, map_tensors


def trainable_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def to_host(results: Sequence[torch.Tensor]) -> None:
    """Copy results to pageable host memory; the host waits for each copy."""
    for result in results:
        result.to("cpu")


Errors = dict[str, float]
"""Relative errors of `result` and `gradient` in the Euclidean norm, if compared."""


@dataclass(frozen=True)
class Answer:
    """The verdict on a step's result: right, unless a reason is set."""

    errors: Errors = field(default_factory=dict)
    wrong: str | None = None
    unchecked: str | None = None
    """Why the result could not be judged."""
    rows: int | None = None
    """Number of rows of the batch that were compared; None: all."""


class Task(ABC):
    """A model on its device and the step to time."""

    cycle_steps: int = 1
    """Steps after which the work repeats; a timed block holds whole cycles, so that all blocks do the same work."""
    reads_back: bool = False
    """Whether the host reads results within a step, which a CUDA graph cannot capture."""
    optimizer: torch.optim.Optimizer | None = None
    is_function: bool = False
    """Whether the step is a plain function, without a model."""
    checked_rows: int = 32
    """Number of rows that the numerical check compares if the whole batch would take long in double precision."""
    batched: bool = True
    """Whether each row of each input is a sample."""
    not_comparable: str | None = None
    """Why the numerical check is skipped, for a step whose result cannot be reproduced."""
    samples_taken: int | None = None
    """Samples of all batches so far; None if each has the cell's batch size."""
    sample_name: str = "samples"
    """Name of the samples, in the plural: images, tokens."""
    notes: tuple[str, ...] = ()
    """Notes on the step, which are shown in the row's reason."""
    switches: Mapping[str, Any] = MappingProxyType({})
    """Torch's switches that the task sets, by their names in `conditions.read_switches`."""
    flags: tuple[str, ...] = ()
    """Names in `config.words.FLAGS`."""
    copies: bool = False
    """Whether each step copies its batch from host memory, and its results back."""
    pinned: bool = False
    """Whether that batch lies in pinned memory."""
    host_ids: Collection[int] = frozenset()
    """Ids of the tensors of that batch that the model expects in host memory."""
    results: Sequence[torch.Tensor] = ()
    """Results of the last forward pass that have not been copied to the host yet."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        self.arithmetic = arithmetic
        self.model = arithmetic.place_model(model)
        self.resident = tuple(arithmetic.place(tensor) for tensor in resident)
        """Tensors from which batches are taken; they stay on the device, or in host memory if each step `copies`."""

    @property
    def on_device(self) -> tuple[torch.Tensor, ...]:
        """Tensors that stay on the device from step to step, other than the model's."""
        return () if self.copies else self.resident

    def move_batches(self, move: Change) -> None:
        """Move the tensors from which batches are taken."""
        self.resident = tuple(map(move, self.resident))

    def next_inputs(self) -> tuple[Any, ...]:
        """The next batch on the device, a pytree; by default always the resident tensors."""
        return self.resident

    def next_batch(self) -> tuple[Any, ...]:
        """The next batch as it is before a step: on the device, or in host memory if each step `copies`."""
        return self.next_inputs()

    def place(self, batch: Any) -> Any:
        """A batch on the device, in the task's arithmetic."""
        return map_tensors(self.arithmetic.place, batch)

    def nth_batch(self, number: int, batch_size: int) -> tuple[torch.Tensor, ...]:
        """A batch of the resident tensors in the dataset's order, counted from 0."""
        return tuple(tensor.narrow(0, number * batch_size, batch_size) for tensor in self.resident)

    @abstractmethod
    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        """The model's results for a batch, all of which `observe` receives.

        In training, the first is the loss (a scalar), which is checked; in inference, they are the outputs, all of
        which are checked.
        """

    def observe(self, *results: torch.Tensor) -> None:  # noqa: B027 - most tasks have nothing to do
        """Process the results of the forward pass within the step."""

    @abstractmethod
    def run(self, *inputs: Any) -> None:
        """The device's work of one step."""

    def bring_back(self) -> None:
        """Copy pending results to the host, which waits for the device."""
        if self.results:
            to_host(self.results)
            self.results = ()

    def end_step(self) -> None:  # noqa: B027
        """The host's work at the end of a step."""

    def step(self) -> None:
        self.run(*self.next_inputs())
        self.bring_back()
        self.end_step()

    def check(self) -> Answer | None:
        """The verdict on the step's result if the task checks it itself."""
        return None

    def own_errors(self) -> dict[str, float] | None:
        """Errors as the workload's source defines them: `max_abs_error`, `max_relative_error` or both."""
        return None


class GradientTask(Task):
    """A forward and backward pass; gradients are discarded."""

    def run(self, *inputs: Any) -> None:
        self.add_gradients(*inputs)
        self.use_gradients()

    def add_gradients(self, *inputs: Any, parts: int = 1) -> None:
        """Forward and backward pass over a batch, or over one of its equal `parts`, whose gradients add up to the
        batch's."""
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
    """Whether the forward pass itself takes derivatives, and needs gradients enabled."""

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
        to_host(results)
        self.end_step()

    def _results(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        with torch.set_grad_enabled(self.takes_gradients), self.arithmetic.autocast():
            return self.forward(self.model, *inputs)


def step_results(task: Task, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A training's loss or an inference's outputs, from what `observe` received; without autograd's graph."""
    return [result.detach() for result in (results if isinstance(task, InferenceTask) else results[:1])]

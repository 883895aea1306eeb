"""Tasks: a workload's step, divided into the parts that timing, CUDA graphs and the numerical check need.

A step takes a batch (`next_inputs`), does the device's work on it (`run`, which calls `forward` if there is a model),
and then the host's work (`end_step`). After `copy_each_step`, a step also copies its batch to the device and its
results back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from crossover.errors import UnsupportedError
from crossover.measurement.modules import packed_tensors_in, parameters_of, set_mode
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.trees import Change, map_plain, map_tensors, tensors_of


def parameter_count(model: nn.Module, mode: str) -> int:
    """Number of a model's parameters; in training without the frozen ones, which inference uses like packed ones."""
    if mode == "infer":
        return sum(tensor.numel() for tensor in (*parameters_of(model), *packed_tensors_in(model)))
    return sum(parameter.numel() for parameter in parameters_of(model) if parameter.requires_grad)


def to_host(results: Sequence[torch.Tensor]) -> None:
    """Copy results to pageable host memory; the host waits for each copy."""
    for result in results:
        result.to("cpu")


Errors = dict[str, float]
"""Relative errors in the Euclidean norm, by the name of the compared values, such as `result` or `gradient`."""


@dataclass(frozen=True)
class CheckResult:
    """The verdict on a step's result: correct, unless `wrong` or `unchecked` has a reason."""

    errors: Errors = field(default_factory=dict)
    wrong: str | None = None
    unchecked: str | None = None
    rows: int | None = None
    """Number of the batch's rows that were compared; None: all."""


class Task(ABC):
    """A model on its device and the step to time."""

    cycle_steps: int = 1
    """Steps after which the work repeats; timed blocks are whole cycles, so that all do the same work."""
    reads_back: bool = False
    """Whether the host reads results within a step, which a CUDA graph cannot capture."""
    optimizer: torch.optim.Optimizer | None = None
    is_function: bool = False
    checked_rows: int = 32
    """Rows that the numerical check compares if the whole batch would take too long in double precision."""
    batched: bool = True
    """Whether each row of each input is a sample."""
    not_comparable: str | None = None
    """Why the numerical check is skipped."""
    samples: int | None = None
    """Number of samples in a batch; None if it is the cell's batch size."""
    samples_taken: int | None = None
    """Number of samples in all batches so far; None if all batches have the same number."""
    sample_name: str = "samples"
    """Name of the samples, in the plural, such as images or tokens."""
    notes: tuple[str, ...] = ()
    switches: Mapping[str, Any] = MappingProxyType({})
    """Settings of torch that the task changes, by their names in `conditions.read_switches`."""
    flags: tuple[str, ...] = ()
    """Flags for the row, from `config.statuses.FLAGS`."""
    copies: bool = False
    """Whether `copy_each_step` makes each step copy its batch from host memory and its results back."""
    pinned: bool = False
    host_ids: Collection[int] = frozenset()
    """Ids of the batch's tensors that are not copied, since the model expects them in host memory."""
    results: Sequence[torch.Tensor] = ()
    """Results of the last forward pass that have not been copied to the host yet."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        self.arithmetic = arithmetic
        self.model = arithmetic.place_model(model)
        self.resident = tuple(arithmetic.place(tensor) for tensor in resident)
        """Tensors from which batches are taken; in host memory if each step `copies`."""

    @property
    def on_device(self) -> tuple[torch.Tensor, ...]:
        """Tensors other than the model's that stay on the device between steps."""
        return () if self.copies else self.resident

    def move_batches(self, move: Change) -> None:
        self.resident = tuple(map(move, self.resident))

    def next_inputs(self) -> tuple[Any, ...]:
        """The next batch, usually on the device, as nested containers."""
        return self.resident

    def next_batch(self) -> tuple[Any, ...]:
        """The next batch before any copy: on the device, or in host memory if each step `copies`."""
        return self.next_inputs()

    def part_read(self, batch: Any) -> Any:
        """The part of a batch that a step reads, and that a CUDA graph needs in its buffers."""
        return batch

    def check_batch(self, *batch: Any) -> None:  # noqa: B027 - only users' steps may do that
        """Raise UserError if the first step has changed its batch in place, so that later ones would get another.

        `batch` is what that step got, if it is not kept in `next_inputs`. Call this after the first step.
        """

    def count_parameters(self) -> int | None:
        """Number of parameters after the first step, which may make layers; None if it cannot have changed."""
        return None

    def user_line(self, error: BaseException) -> str | None:
        """File and line of the user's code that raised an error; None if other code raised it."""
        del error
        return None

    def place(self, batch: Any) -> Any:
        return map_tensors(self.arithmetic.place, batch)

    def nth_batch(self, number: int, batch_size: int) -> tuple[torch.Tensor, ...]:
        return tuple(tensor.narrow(0, number * batch_size, batch_size) for tensor in self.resident)

    @abstractmethod
    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        """The model's results for a batch; in training, the first is the loss (a scalar), and no other is checked."""

    def observe(self, *results: torch.Tensor) -> None:  # noqa: B027 - most tasks have nothing to do
        """Process the results of the forward pass, as part of the step."""

    @abstractmethod
    def run(self, *inputs: Any) -> None:
        """The device's part of a step."""

    def bring_back(self) -> None:
        """Copy pending results to the host, which waits for the device."""
        if self.results:
            to_host(self.results)
            self.results = ()

    def end_step(self) -> None:  # noqa: B027
        """The host's part of a step, after the device's."""

    def step(self) -> None:
        self.run(*self.next_inputs())
        self.bring_back()
        self.end_step()

    def around(self) -> AbstractContextManager[object]:
        """The context of a block of `timed_step`: what `step` enters each time, and a plain loop enters once."""
        return nullcontext()

    def timed_step(self) -> Callable[[], object]:
        """The work of `step`, which has succeeded before, with nothing around it that a plain loop does not have."""
        return self.step

    def check(self) -> CheckResult | None:
        """The verdict of the task's own check; None to compare with double precision."""
        return None

    def own_errors(self) -> dict[str, float] | None:
        """Errors as defined by the workload's source, if any: `max_abs_error`, `max_relative_error` or both."""
        return None


class GradientTask(Task):
    """A forward and backward pass, whose gradients are discarded."""

    def run(self, *inputs: Any) -> None:
        self.add_gradients(*inputs)
        self.use_gradients()

    def add_gradients(self, *inputs: Any, parts: int = 1) -> None:
        """Run the passes on a batch, or on one of its `parts`, whose gradients add up to those of the batch."""
        with self.arithmetic.autocast():
            results = self.forward(self.model, *inputs)
        self.observe(*results)
        self.arithmetic.backward(results[0] if parts == 1 else results[0] / parts)

    def use_gradients(self) -> None:
        self.model.zero_grad(set_to_none=True)


class TrainingTask(GradientTask):
    optimizer: torch.optim.Optimizer

    def use_gradients(self) -> None:
        self.arithmetic.step(self.optimizer)
        self.optimizer.zero_grad()

    def timed_step(self) -> Callable[[], object]:
        return self.step if self.copies or type(self).run is not GradientTask.run else self.plain_step()

    def plain_step(self) -> Callable[[], None]:
        """The step in one function, as in a training loop, without the calls of the task's empty parts."""
        model, optimizer, next_inputs, forward = self.model, self.optimizer, self.next_inputs, self.forward
        device, autocast_dtype = self.arithmetic.device.type, self.arithmetic.autocast_dtype
        backward = torch.Tensor.backward if self.arithmetic.scaler is None else self.arithmetic.backward
        update = optimizer.step if self.arithmetic.scaler is None else partial(self.arithmetic.step, optimizer)
        observe = None if type(self).observe is Task.observe else self.observe
        end_step = None if type(self).end_step is Task.end_step else self.end_step

        def step() -> None:
            if autocast_dtype is None:
                results = forward(model, *next_inputs())
            else:
                with torch.autocast(device, autocast_dtype):
                    results = forward(model, *next_inputs())
            if observe is not None:
                observe(*results)
            backward(results[0])
            del results
            update()
            optimizer.zero_grad()
            if end_step is not None:
                end_step()

        return step


class InferenceTask(Task):
    """An inference pass: evaluation mode, and usually no gradients."""

    takes_gradients: bool = False
    """Whether the forward pass computes derivatives, for which gradients must be enabled."""

    def __init__(self, model: nn.Module, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        set_mode(model, training=False)
        super().__init__(model, arithmetic, resident)

    def run(self, *inputs: Any) -> None:
        self.observe(*self._results(*inputs))

    def around(self) -> AbstractContextManager[object]:
        return torch.set_grad_enabled(self.takes_gradients)

    def timed_step(self) -> Callable[[], object]:
        parts = ("run", "observe", "end_step")
        only_forward = all(getattr(type(self), part) is getattr(InferenceTask, part) for part in parts)
        if self.copies or not only_forward or self.arithmetic.autocast_dtype is not None:
            return self.step
        forward, model, next_inputs = self.forward, self.model, self.next_inputs
        return lambda: forward(model, *next_inputs())

    def next_host_inputs(self) -> tuple[Any, ...]:
        """The next batch in pageable host memory; raises NotImplementedError if the workload has none."""
        raise NotImplementedError

    def step_with_transfers(self) -> None:
        """Run a step that copies its batch from pageable memory and its results back."""
        results = self._results(*self.place(self.next_host_inputs()))
        self.observe(*results)
        to_host(results)
        self.end_step()

    def _results(self, *inputs: Any) -> tuple[torch.Tensor, ...]:
        with torch.set_grad_enabled(self.takes_gradients), self.arithmetic.autocast():
            return self.forward(self.model, *inputs)


def step_results(task: Task, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The loss of a training or the outputs of an inference, from `forward`'s results and without autograd's graph."""
    return [result.detach() for result in (results if isinstance(task, InferenceTask) else results[:1])]


def copy_each_step(task: Task, pinned: bool) -> None:
    """Move a task's batches to host memory, and let each step copy its batch in and its results out.

    The host waits for the results, which go to pageable memory. Raises UnsupportedError if tensors cannot be pinned, or
    if the workload makes its batches on the device.
    """

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if not pinned:
            return tensor.cpu()
        if tensor.layout != torch.strided:
            raise UnsupportedError("from_host pins dense tensors only; use from_pageable")
        return tensor.cpu().pin_memory()

    task.move_batches(move)
    if any(tensor.device.type != "cpu" for tensor in tensors_of(task.next_inputs())):
        raise UnsupportedError("the workload makes its batches on the device; use protocol resident")
    task.copies, task.pinned = True, pinned
    device, host_ids = task.arithmetic.device, task.host_ids
    next_batch, observe = task.next_inputs, task.observe

    def copy_in(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if id(tensor) in host_ids else tensor.to(device, non_blocking=pinned)

    def record(*results: torch.Tensor) -> None:
        task.results = step_results(task, results)
        observe(*results)

    vars(task).update(next_batch=next_batch, next_inputs=lambda: map_plain(copy_in, next_batch()), observe=record)

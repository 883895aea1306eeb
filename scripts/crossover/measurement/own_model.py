"""A model of a user's own as a workload: what its function returns, and the steps that are made of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.data import DataLoader, Dataset, IterableDataset

from crossover import Step
from crossover.config.models import Model, Table
from crossover.config.studies import Cell
from crossover.errors import UnsupportedError, UserError
from crossover.measurement.class_labels import ClassLabels, class_loss
from crossover.measurement.own_table import TableSamples, samples_of
from crossover.measurement.step.endings import early_end
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask, Task, TrainingTask
from crossover.measurement.user_module import first_line, function_of, place_of, takes_batch_size

RETURNS = "(model, inputs), (model, inputs, targets) or a crossover.Step"
PARTS = {
    "loss": "a function of the model's output, and of the targets if there are any",
    "optimizer": "an optimizer of the model's parameters, or a function that makes one of them",
    "run": "a function of model, inputs, targets and optimizer",
}
"""What else a Step may hold."""
LEARNING_RATE = 1e-3
"""Small, so that repeated steps on one batch stay finite."""


class OwnModel:
    """A user's model at a cell's size and batch size."""

    def __init__(self, cell: Cell) -> None:
        assert cell.model is not None
        self.model = cell.model
        self.cell = cell

    def build_model(self, _size: int) -> nn.Module:
        """The model alone, with fresh weights."""
        model: nn.Module = self._made().model
        return model

    def build(self, cell: Cell, _data: object, arithmetic: Arithmetic) -> Task:
        """The step that the study's `mode` asks for."""
        kind = OwnTraining if self.model.mode == "train" else OwnInference
        task = kind(self._made(), self.model, cell, arithmetic)
        if not self.model.checked:
            task.not_comparable = "the study says check: false"
        return task

    def _made(self) -> Step:
        """What the user's function returns, as a Step; raises UserError with file and line where it fails."""
        size = self.model.argument(self.cell.size)
        function = function_of(self.model)
        call = f"{self.model.name}({size!r}, {self.cell.batch_size})"
        try:
            returned = function(size, self.cell.batch_size)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise refused(error, self.model, f"{call} fails") from error
        where = f"{self.model.shown}: {call}"
        return _as_step(returned, where) if self.model.table is None else _on_table(returned, self.model.table, where)


def _as_step(returned: Any, where: str) -> Step:
    if isinstance(returned, Step):
        made = returned
    elif isinstance(returned, tuple) and len(returned) in (2, 3):
        made = Step(model=returned[0], inputs=returned[1], targets=returned[2] if len(returned) == 3 else None)
    else:
        raise UserError(f"{where} returns {_kind(returned)}; allowed: {RETURNS}")
    if not isinstance(made.model, nn.Module):
        raise UserError(f"{where} returns {_kind(made.model)} as the model; allowed: a torch.nn.Module")
    if not isinstance(made.inputs, Dataset | DataLoader) and not _tensors(made.inputs):
        raise UserError(
            f"{where} returns {_kind(made.inputs)} as the inputs; allowed: a tensor, a tuple or dict of them, a "
            "Dataset or a DataLoader"
        )
    for part in ("loss", "optimizer", "run"):
        value = getattr(made, part)
        if not (value is None or callable(value) or (part == "optimizer" and isinstance(value, torch.optim.Optimizer))):
            raise UserError(f"{where} returns {_kind(value)} as the {part}; allowed: {PARTS[part]}")
    if made.targets is not None and not isinstance(made.targets, torch.Tensor):
        raise UserError(f"{where} returns {_kind(made.targets)} as the targets; allowed: a tensor, or none")
    return made


def _on_table(returned: Any, table: Table, where: str) -> Step:
    """A model on the samples of a table."""
    if isinstance(returned, Step):
        return replace(returned, inputs=samples_of(table))
    if not isinstance(returned, nn.Module):
        raise UserError(
            f"{where} returns {_kind(returned)}; allowed with a table: the model alone, or a crossover.Step"
        )
    return Step(model=returned, inputs=samples_of(table))


def _kind(value: Any) -> str:
    count = f" of {len(value)}" if isinstance(value, tuple) else ""
    return "None" if value is None else f"a {type(value).__name__}{count}"


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


class Batch:
    """How the tensors of a batch belong to the model's inputs and to the targets."""

    def __init__(self, inputs: Any, targets: Any) -> None:
        leaves, self.spec = tree_flatten((inputs, targets))
        self.is_tensor = [isinstance(leaf, torch.Tensor) and leaf.dim() > 0 for leaf in leaves]
        self.constants = [None if own else leaf for leaf, own in zip(leaves, self.is_tensor, strict=True)]
        self.tensors = tuple(leaf for leaf, own in zip(leaves, self.is_tensor, strict=True) if own)

    def unpack(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
        """Inputs and targets with these tensors in place of the batch's own."""
        given = iter(tensors)
        leaves = [next(given) if own else leaf for leaf, own in zip(self.constants, self.is_tensor, strict=True)]
        inputs, targets = tree_unflatten(leaves, self.spec)
        return inputs, targets


def _batches(made: Step, batch_size: int) -> Iterator[Batch]:
    """The batches of a step, without end; those of a Dataset in a new order each time."""
    inputs = made.inputs
    if isinstance(inputs, Dataset):
        rows = None if isinstance(inputs, IterableDataset) else len(cast(Sized, inputs))
        if rows is not None and rows < batch_size:
            raise ValueError(f"batch size {batch_size} is larger than the data; allowed: at most its {rows} rows")
        inputs = DataLoader(inputs, batch_size=batch_size, shuffle=rows is not None, drop_last=True)
    if not isinstance(inputs, DataLoader):
        yield from cycle([Batch(inputs, made.targets)])
    while True:
        for batch in inputs:
            if isinstance(batch, list | tuple) and len(batch) > 1:
                *first, targets = batch
                yield Batch(first[0] if len(first) == 1 else tuple(first), targets)
            else:
                yield Batch(batch[0] if isinstance(batch, list | tuple) else batch, None)


def called(model: nn.Module, inputs: Any) -> Any:
    """The model's output: a dict becomes keywords, a tuple several arguments."""
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, list | tuple) else model(inputs)


def first_tensor(output: Any) -> torch.Tensor:
    """The tensor of a model's output that counts: logits, or else the first one of floating point."""
    if isinstance(logits := getattr(output, "logits", None), torch.Tensor):
        return logits
    if hasattr(output, "to_tuple"):  # an output of transformers
        output = output.to_tuple()
    found = [tensor for tensor in _tensors(output) if tensor.is_floating_point()]
    if not found:
        raise ValueError(
            f"the model returns {_kind(output)} without a tensor of floating point; give a crossover.Step with a loss"
        )
    return found[0]


def default_loss(output: Any, targets: torch.Tensor | None, labels: ClassLabels | None = None) -> torch.Tensor:
    """The output's own loss; else what the targets ask for; without targets the mean square, which costs as much.

    Raises UserError if the model has too few outputs for the known `labels`.
    """
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    scores = first_tensor(output)
    if targets is None:
        return scores.square().mean()
    if targets.is_floating_point():
        if scores.shape != targets.shape and scores.numel() == targets.numel():
            scores = scores.reshape(targets.shape)
        if scores.shape == targets.shape:
            return functional.mse_loss(scores, targets)
    elif scores.shape[:-1] == targets.shape:
        return class_loss(scores.flatten(0, -2), targets.flatten(), labels)
    elif scores.dim() > 1 and scores.shape[:1] + scores.shape[2:] == targets.shape:
        return class_loss(scores, targets, labels)
    elif scores.numel() == targets.numel() and labels is not None:
        labels.check(outputs=1)
    raise ValueError(
        f"the model returns {list(scores.shape)} for targets of {list(targets.shape)} in {str(targets.dtype)[6:]}, "
        "which no default loss compares; give a crossover.Step with a loss"
    )


REFUSALS = (ValueError, AssertionError, RuntimeError)
"""What a function or a model says of a size that it does not offer; other errors are mistakes."""


def refused(error: BaseException, model: Model, what: str) -> Exception:
    """The user's mistake with its line; a result where nobody asked for the size."""
    text = f"{place_of(error, model)}: {what}: {type(error).__name__}: {first_line(error)}"
    return UnsupportedError(text) if model.may_refuse and isinstance(error, REFUSALS) else UserError(text)


@contextmanager
def explaining(model: Model, what: str = "its step fails") -> Iterator[None]:
    """Raise an error of a model's step as what it means."""
    try:
        yield
    except Exception as error:
        if (meant := explained(error, model, what)) is error:
            raise
        raise meant from error


def explained(error: Exception, model: Model, what: str) -> Exception:
    """An error of a model's step as what it means: a result of its own, or the user's mistake with its line."""
    if isinstance(error, UserError) or early_end(error) is not None:
        return error
    compiling = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
    if compiling or re.search(r"not implemented for|Could not run 'aten::", str(error)):
        return UnsupportedError(first_line(error))
    return refused(error, model, what)


def _check_rows(batch: Batch, batch_size: int, model: Model, scales: bool) -> None:
    """Raise UserError if a batch cannot be of `batch_size` samples, by which a rate is counted.

    They may lie along the first or the second dimension; where the function is given the batch size, a sample may also
    be several rows, as the nodes of a graph.
    """
    lengths = [length for tensor in batch.tensors for length in tensor.shape[:2]]
    whole = scales and any(len(tensor) % batch_size == 0 for tensor in batch.tensors)
    if whole or batch_size in lengths:
        return
    rows = " or ".join(map(str, dict.fromkeys(len(tensor) for tensor in batch.tensors)))
    advice = "build it of batch_size rows" if scales else f"take batch size {rows}"
    raise UserError(f"{model.shown}: its batch has {rows} rows, not the {batch_size} of the batch size; {advice}")


class _Own:
    """What both modes share: batches, and how they travel."""

    arithmetic: Arithmetic

    def __init__(self, made: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        self.made, self.own_model = made, model
        self.batches = _batches(made, cell.batch_size)
        with explaining(model, "its data fail"):
            self.batch = next(self.batches)
        self.loaded = cell.protocol == "loaded"
        if self.loaded and not isinstance(made.inputs, Dataset | DataLoader):
            raise UserError(
                f"{model.shown}: it returns no Dataset or DataLoader, which protocol loaded takes; take resident"
            )
        _check_rows(self.batch, cell.batch_size, model, takes_batch_size(model))
        self.batched = all(len(tensor) == cell.batch_size for tensor in self.batch.tensors)
        if not self.batched:
            self.checked_rows = sys.maxsize
        resident = () if self.loaded else self.batch.tensors
        super().__init__(made.model, arithmetic, resident)  # type: ignore[call-arg]

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        if not self.loaded:
            return self.resident  # type: ignore[attr-defined, no-any-return]
        with explaining(self.own_model, "its data fail"):
            return tuple(map(self.arithmetic.place, next(self.batches).tensors))


class OwnTraining(_Own, TrainingTask):
    """Forward, loss, backward, optimizer; or the user's own step."""

    def __init__(self, made: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        super().__init__(made, model, cell, arithmetic)
        self.model.train()
        of_table = isinstance(made.inputs, TableSamples)
        self.labels = (
            made.inputs.labels if of_table else ClassLabels.of_targets(self.batch.unpack(self.batch.tensors)[1])
        )
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if not parameters:
            raise UserError(f"{model.shown}: the model has no parameters to train; take mode: infer")
        made_by = made.optimizer or partial(torch.optim.SGD, lr=LEARNING_RATE)
        with explaining(model, "its optimizer fails"):
            self.optimizer = made_by if isinstance(made_by, torch.optim.Optimizer) else made_by(parameters)
        if made.run is not None:
            self.not_comparable = "its step is the user's own function"

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, targets = self.batch.unpack(inputs)
        loss = self.made.loss or partial(default_loss, labels=self.labels)
        given = (targets,) if targets is not None or self.made.loss is None else ()
        return (loss(called(model, values), *given),)

    def run(self, *inputs: torch.Tensor) -> None:
        """The user's own step, if there is one."""
        with explaining(self.own_model):
            if self.made.run is None:
                super().run(*inputs)
            else:
                values, targets = self.batch.unpack(inputs)
                with self.arithmetic.autocast():
                    self.made.run(self.model, values, targets, self.optimizer)


class OwnInference(_Own, InferenceTask):
    """The forward pass alone."""

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (first_tensor(called(model, self.batch.unpack(inputs)[0])),)

    def run(self, *inputs: torch.Tensor) -> None:
        with explaining(self.own_model):
            super().run(*inputs)

    def next_host_inputs(self) -> tuple[torch.Tensor, ...]:
        return self.batch.tensors

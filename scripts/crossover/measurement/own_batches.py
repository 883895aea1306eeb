"""The batches of a user's own model: where they come from, how many samples they have, what stays in host memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sized
from itertools import count, repeat
from typing import Any, cast

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate, default_convert

from crossover import Step
from crossover.errors import UserError
from crossover.measurement.step.trees import tensors_of

Batch = tuple[Any, Any]
"""Inputs and targets."""

COUNT_THEM = "say how many samples a step has: Step(samples=...)"


def batches_of(made: Step, batch_size: int, shown: str) -> Iterator[Batch]:
    """The batches of a step, without end; those of a Dataset in a new order each time.

    Raises UserError, which begins with `shown`, for a Dataset or loader that gives none.
    """
    loader = made.inputs
    if isinstance(loader, Dataset):
        rows = None if isinstance(loader, IterableDataset) else len(cast(Sized, loader))
        if rows is not None and rows < batch_size:
            raise UserError(
                f"{shown}: batch size {batch_size} is larger than the data; allowed: at most its {rows} rows"
            )
        loader = DataLoader(loader, batch_size=batch_size, shuffle=rows is not None, drop_last=True)
    if not isinstance(loader, DataLoader):
        yield from repeat((made.inputs, made.targets))
    collated = loader.collate_fn in (default_collate, default_convert)
    for epoch in count(1):
        batch = None
        for batch in loader:
            yield _split(batch, collated)
        if batch is None:
            raise UserError(f"{shown}: its loader gave no batch {_why_empty(epoch, batch_size)}")


def _why_empty(epoch: int, batch_size: int) -> str:
    if epoch > 1:
        return f"in epoch {epoch}: its data can be read once only; let them start again with each iteration"
    return f"of {batch_size}: it has fewer rows, or was read to its end; give it more rows, or let it start again"


def _split(batch: Any, collated: bool) -> Batch:
    """Inputs and targets of a loader's batch; `collated`: by torch, which makes lists of an item's tuples."""
    if not isinstance(batch, list | tuple) or hasattr(batch, "_fields"):
        return batch, None
    *inputs, targets = batch
    if not inputs:
        return targets, None
    if collated:
        inputs = [tuple(part) if isinstance(part, list) else part for part in inputs]
    if is_list_of_dicts(targets):  # a sample each, and so are the inputs, as zip(*batch) collates them
        inputs = [list(part) if type(part) is tuple else part for part in inputs]
        targets = list(targets)
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), targets


def is_list_of_dicts(values: Any) -> bool:
    return isinstance(values, list | tuple) and bool(values) and all(isinstance(value, dict) for value in values)


def sample_counter(
    made: Step, first: Batch, batch_size: int, shown: str, takes_batch_size: bool
) -> Callable[[Any, Any], int]:
    """How to count a batch's samples: as the step says, or along what has `batch_size` of them in the first batch.

    Raises UserError, which begins with `shown`, if that is nothing.
    """
    samples = made.samples
    if callable(samples):
        return lambda inputs, targets: int(samples(inputs, targets))
    if samples is not None:
        return lambda _inputs, _targets: samples
    inputs, targets = first
    if isinstance(targets, torch.Tensor) and _rows(targets) == batch_size:
        return lambda _inputs, targets: int(targets.size(0))
    if isinstance(inputs, torch.Tensor) and _rows(inputs) == batch_size:
        return lambda inputs, _targets: int(inputs.size(0))
    counts = sample_counts(first)
    if batch_size in counts:
        place = counts.index(batch_size)
        return lambda inputs, targets: sample_counts((inputs, targets))[place]
    if _takes_time_first(made.model) and batch_size in (counts := _second_lengths(first)):
        place = counts.index(batch_size)
        return lambda inputs, targets: _second_lengths((inputs, targets))[place]
    rows = " or ".join(map(str, dict.fromkeys(sample_counts(first)))) or "no"
    advice = "build it of batch_size rows" if takes_batch_size else f"take batch size {rows}"
    raise UserError(
        f"{shown}: its batch has {rows} rows, not the {batch_size} of the batch size; {advice}, or {COUNT_THEM}"
    )


def sample_counts(batch: Batch) -> list[int]:
    """Numbers of samples that a batch may have: the lengths of its lists, of its packed sequences, of its tensors."""
    lists = [length for part in batch for length in _lists(part)]
    leaves = tree_leaves(batch, is_leaf=lambda value: isinstance(value, PackedSequence))
    packed = [int(leaf.batch_sizes[0]) for leaf in leaves if isinstance(leaf, PackedSequence)]
    graphs = [int(leaf.num_graphs) for leaf in leaves if hasattr(leaf, "num_graphs")]
    rows = [_rows(tensor) for tensor in tensors_of([leaf for leaf in leaves if not isinstance(leaf, PackedSequence)])]
    return [*lists, *packed, *graphs, *(length for length in rows if length is not None)]


def _lists(values: Any) -> Iterator[int]:
    """Lengths of the lists that hold a sample in each place."""
    if isinstance(values, list):
        if values and all(tensors_of(value) for value in values):
            yield len(values)
    elif isinstance(values, tuple | dict):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _lists(value)


def _rows(tensor: torch.Tensor) -> int | None:
    return tensor.size(0) if tensor.dim() else None


def _second_lengths(batch: Batch) -> list[int]:
    return [tensor.size(1) for tensor in tensors_of(batch) if tensor.dim() > 1 and not tensor.is_nested]


def _takes_time_first(model: nn.Module) -> bool:
    """Whether layers of torch take batches along the second dimension."""
    return any(getattr(module, "batch_first", True) is False for module in model.modules())


def host_reader(made: Step, first: Batch, shown: str) -> Callable[[Any], list[torch.Tensor]] | None:
    """Finds the tensors that stay in host memory among a batch's inputs; None if all are moved.

    Raises UserError, which begins with `shown`, for a name that the inputs do not have.
    """
    names = (made.host,) if isinstance(made.host, str) else tuple(made.host)
    if not names:
        return None
    known = _names(made.model, first[0])
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"{shown}: host: no input is called {unknown[0]!r}; allowed: {', '.join(known) or 'none'}")
    if type(first[0]) is tuple:
        places = [known.index(name) for name in names]
        return lambda inputs: tensors_of([inputs[place] for place in places])
    return lambda inputs: tensors_of([_field(inputs, name) for name in names])


def _names(model: nn.Module, inputs: Any) -> list[str]:
    """What inputs are called: the keys of a dict, the model's arguments that a tuple fills, an object's fields."""
    if hasattr(inputs, "keys"):
        return [str(key) for key in inputs.keys()]  # noqa: SIM118 - not every such object iterates over its keys
    if type(inputs) is tuple:
        return list(inspect.signature(model.forward).parameters)[: len(inputs)]
    fields = getattr(inputs, "_fields", None)
    return list(fields) if fields else list(getattr(inputs, "__dict__", {}))


def lengths_among(model: nn.Module, inputs: Any) -> list[str]:
    """The names of inputs that may be lengths of sequences: whole numbers in one dimension."""
    names = _names(model, inputs)
    parts = inputs if type(inputs) is tuple else [_field(inputs, name) for name in names]
    return [name for name, part in zip(names, parts, strict=False) if _may_be_lengths(part)]


def _may_be_lengths(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype == torch.int64 and part.dim() == 1


def _field(inputs: Any, name: str) -> Any:
    return inputs[name] if hasattr(inputs, "keys") else getattr(inputs, name)

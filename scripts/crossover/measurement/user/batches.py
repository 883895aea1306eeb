"""The batches of a user's model: their source, their numbers of samples, and the inputs that stay in host memory."""

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
from crossover.measurement.modules import modules_of
from crossover.measurement.step.trees import tensors_of

Batch = tuple[Any, Any]
"""Inputs and targets."""

COUNT_THEM = "give the number of samples in a step: Step(samples=...)"


def batches_of(step: Step, batch_size: int, shown: str) -> Iterator[Batch]:
    """Yield the Step's batches endlessly; a map-style Dataset is shuffled anew in each epoch.

    Raises UserError if a Dataset has fewer rows than a batch, or if an epoch has no batch.
    """
    loader = step.inputs
    if isinstance(loader, Dataset):
        rows = None if isinstance(loader, IterableDataset) else len(cast(Sized, loader))
        if rows is not None and rows < batch_size:
            raise UserError(
                f"{shown}: batch size {batch_size} is larger than the data; allowed: at most its {rows} rows"
            )
        loader = DataLoader(loader, batch_size=batch_size, shuffle=rows is not None, drop_last=True)
    if not isinstance(loader, DataLoader):
        yield from repeat((step.inputs, step.targets))
    collated = loader.collate_fn in (default_collate, default_convert)
    for epoch in count(1):
        batch = None
        for batch in loader:
            yield _split(batch, collated)
        if batch is None:
            why = f"of {batch_size}: it has fewer rows, or is exhausted; give it more rows, or make it re-iterable"
            if epoch > 1:
                why = f"in epoch {epoch}: it can be read only once; make it re-iterable"
            raise UserError(f"{shown}: its data gave no batch {why}")


def _split(batch: Any, collated: bool) -> Batch:
    """Split a loader's batch into inputs and targets.

    `collated` is True if torch's collation has turned tuples into lists.
    """
    if not isinstance(batch, list | tuple) or hasattr(batch, "_fields"):
        return batch, None
    *inputs, targets = batch
    if not inputs:
        return targets, None
    if collated:
        inputs = [tuple(part) if isinstance(part, list) else part for part in inputs]
    if is_list_of_dicts(targets):  # one dict per sample, as made with zip(*batch) by a detector's collate function
        inputs = [list(part) if type(part) is tuple else part for part in inputs]
        targets = list(targets)
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), targets


def is_list_of_dicts(values: Any) -> bool:
    return isinstance(values, list | tuple) and bool(values) and all(isinstance(value, dict) for value in values)


def sample_counter(
    step: Step, first: Batch, batch_size: int, shown: str, takes_batch_size: bool
) -> Callable[[Any, Any], int]:
    """Make a function that counts the samples of a batch.

    It uses the Step's `samples` if given, or else the length of a part that has `batch_size` rows in the first batch.
    Raises UserError if there is no such part.
    """
    samples = step.samples
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
        index = counts.index(batch_size)
        return lambda inputs, targets: sample_counts((inputs, targets))[index]
    # By default, torch's recurrent layers expect the batch in the second dimension.
    time_first = any(getattr(module, "batch_first", True) is False for module in modules_of(step.model))
    if time_first and batch_size in (lengths := _second_lengths(first)):
        index = lengths.index(batch_size)
        return lambda inputs, targets: _second_lengths((inputs, targets))[index]
    rows = " or ".join(map(str, dict.fromkeys(counts))) or "no"
    advice = "build it with batch_size rows" if takes_batch_size else f"take batch size {rows}"
    raise UserError(
        f"{shown}: its batch has {rows} rows, but the batch size is {batch_size}; {advice}, or {COUNT_THEM}"
    )


def sample_counts(batch: Batch) -> list[int]:
    """Possible numbers of samples in a batch: lengths of lists and tensors, numbers of packed sequences and graphs."""
    lists = [length for part in batch for length in _lists(part)]
    leaves = tree_leaves(batch, is_leaf=lambda value: isinstance(value, PackedSequence))
    packed = [int(leaf.batch_sizes[0]) for leaf in leaves if isinstance(leaf, PackedSequence)]
    graphs = [int(leaf.num_graphs) for leaf in leaves if hasattr(leaf, "num_graphs")]
    rows = [_rows(tensor) for tensor in tensors_of([leaf for leaf in leaves if not isinstance(leaf, PackedSequence)])]
    return [*lists, *packed, *graphs, *(length for length in rows if length is not None)]


def _lists(values: Any) -> Iterator[int]:
    """Lengths of lists whose items all contain tensors."""
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


def host_reader(step: Step, first: Batch, shown: str) -> Callable[[Any], list[torch.Tensor]]:
    """A function that returns the input tensors named by the Step's `host`; raises UserError for unknown names."""
    names = (step.host,) if isinstance(step.host, str) else tuple(step.host)
    if not names:
        return lambda _inputs: []
    allowed = _names(step.model, first[0])
    if unknown := [name for name in names if name not in allowed]:
        raise UserError(f"{shown}: host: no input is called {unknown[0]!r}; allowed: {', '.join(allowed) or 'none'}")
    if type(first[0]) is tuple:
        indices = [allowed.index(name) for name in names]
        return lambda inputs: tensors_of([inputs[index] for index in indices])
    return lambda inputs: tensors_of([_field(inputs, name) for name in names])


def _names(model: nn.Module, inputs: Any) -> list[str]:
    """The names of a model's inputs: keys of a dict, arguments of `forward` for a tuple, fields of an object."""
    if hasattr(inputs, "keys"):
        return [str(key) for key in inputs.keys()]  # noqa: SIM118 - not every such object iterates over its keys
    if type(inputs) is tuple:
        return list(inspect.signature(model.forward).parameters)[: len(inputs)]
    fields = getattr(inputs, "_fields", None)
    return list(fields) if fields else list(getattr(inputs, "__dict__", {}))


def _field(inputs: Any, name: str) -> Any:
    return inputs[name] if hasattr(inputs, "keys") else getattr(inputs, name)

"""Batches as nested containers, whose leaves are tensors and other values.

Containers include those of torch's pytrees, subclasses of dict, dataclasses, packed sequences, and objects with a
method `to`, such as a BatchEncoding of transformers or a graph of torch_geometric.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import UserDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_map

Change = Callable[[torch.Tensor], torch.Tensor]


def tensors_of(values: Any) -> list[torch.Tensor]:
    """The tensors in nested containers, in order; fast for a tensor and a tuple of tensors, as `map_plain` is."""
    if isinstance(values, torch.Tensor):
        return [values]
    if type(values) is tuple and all(isinstance(value, torch.Tensor) for value in values):
        return list(values)
    tensors: list[torch.Tensor] = []

    def collect(tensor: torch.Tensor) -> torch.Tensor:
        tensors.append(tensor)
        return tensor

    change_tensors(collect, values)
    return tensors


def same_values(first: Any, second: Any) -> bool:
    """True if two nested containers have equal tensors in the same order, where NaN equals NaN."""
    firsts, seconds = tensors_of(first), tensors_of(second)
    return len(firsts) == len(seconds) and all(map(_equal, firsts, seconds))


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if (a.shape, a.dtype, a.layout) != (b.shape, b.dtype, b.layout):
        return False
    a, b = a.detach(), b.detach().to(a.device)
    if a.layout != torch.strided or a.is_nested or a.is_quantized:
        return True  # torch compares no such tensors
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def map_tensors(change: Change, values: Any) -> Any:
    """Apply a function to each tensor in nested containers, outside of autograd's graph.

    If a tensor requires gradients, its result is a new leaf of the graph that requires them too.
    """

    def change_leaf(tensor: torch.Tensor) -> torch.Tensor:
        return change(tensor.detach()).requires_grad_() if tensor.requires_grad else change(tensor)

    return change_tensors(change_leaf, values)


def map_plain(change: Change, values: Any) -> Any:
    """Like `map_tensors`, but fast for plain tuples: the general traversal adds 15 us to a timed step."""
    if values is None:
        return None
    if isinstance(values, torch.Tensor) and not values.requires_grad:
        return change(values)
    return tuple(map_plain(change, value) for value in values) if type(values) is tuple else map_tensors(change, values)


def change_tensors(change: Change, values: Any) -> Any:
    """Like `map_tensors`, but autograd records the function."""
    return tree_map(lambda leaf: _changed(change, leaf), values, is_leaf=lambda leaf: isinstance(leaf, PackedSequence))


def _changed(change: Change, leaf: Any) -> Any:
    """Apply a function to the tensors in what torch's pytrees treat as a leaf."""
    if isinstance(leaf, torch.Tensor):
        return change(leaf)
    if isinstance(leaf, PackedSequence):  # a packed sequence's batch sizes must stay in host memory
        order = (leaf.sorted_indices, leaf.unsorted_indices)
        changed_order = [None if indices is None else change(indices) for indices in order]
        return PackedSequence(change(leaf.data), leaf.batch_sizes, *changed_order)
    if isinstance(leaf, dict):
        changed = copy.copy(leaf)
        changed.update({key: change_tensors(change, value) for key, value in leaf.items()})
        return changed
    if isinstance(leaf, tuple) and hasattr(leaf, "_make"):
        return leaf._make(change_tensors(change, list(leaf)))
    if _can_move(leaf) and callable(getattr(leaf, "apply", None)):  # torch_geometric's graphs are changed in place
        return copy.copy(leaf).apply(change)
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        names = [field.name for field in dataclasses.fields(leaf) if hasattr(leaf, field.name)]
    elif _can_move(leaf):
        names = list(vars(leaf))
    else:
        return leaf
    changed = copy.copy(leaf)
    for name in names:
        object.__setattr__(changed, name, change_tensors(change, getattr(leaf, name)))
    return changed


def _can_move(leaf: Any) -> bool:
    movable = isinstance(leaf, UserDict) or callable(getattr(type(leaf), "to", None))
    return movable and hasattr(leaf, "__dict__") and not isinstance(leaf, nn.Module | type)

"""Batches as pytrees: any nesting of tuples, lists and dicts with tensors and other values as leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only


def tensors_of(values: Any) -> list[torch.Tensor]:
    """The tensors among the leaves, in order."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], values: Any) -> Any:
    """The same nesting with each tensor changed; all other leaves stay as they are."""
    return tree_map_only(torch.Tensor, change, values)

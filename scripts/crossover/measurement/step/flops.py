"""The work of a step: floating-point operations as torch counts them, and the bytes that its operators move.

Operations are those of matmuls, convolutions and attention, nothing else.
A multiplication and an addition are two. The step is counted as it runs eagerly, with accumulated batches, repeated
forward passes of checkpoints and an optimizer's matmuls. So the number says what the step asks for, whatever a compiler
or a graph leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

SLOW_STEP_S = 1.0
"""Steps longer than this are counted in the first trial of a cell only: the number is the same in all of them."""

FORWARD = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_attention_math_for_mps",
)
BACKWARD = (
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
)
"""Fused attention off CUDA, which torch's counter (2.13) leaves out."""


def count_work(step: Callable[[], None], execution: str) -> dict[str, Any]:
    """Run a task's step once, always eagerly, and count its operations and bytes, as columns of `Measurement`.

    The counters about treble the step's launch time.
    """
    eager = torch.compiler.set_stance("force_eager") if execution == "compile" else nullcontext()
    with eager, FlopCounterMode(display=False, custom_mapping=_attention()) as counter, Traffic() as traffic:
        step()
    return {"flops_per_step": int(counter.get_total_flops()), "bytes_by_working_set": traffic.bytes_by_working_set}


ONLY_WRITTEN = ("copy_", "zero_", "fill_")
"""Operators that do not read what they change."""

NOT_TOUCHED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "resize_", "set_")
"""Operators that move nothing."""


class Traffic(TorchDispatchMode):
    """Sums up the bytes that each operator reads and writes, each tensor once: the least that it must move.

    The sums are kept apart by the operator's own bytes, since what fits into a cache moves faster.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes_by_working_set: list[float] = [0.0] * 48
        """At place k for operators that touch from 2^k to 2^(k+1) bytes."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        moved = _moved_bytes(func, args, kwargs or {}, results)
        if moved > 0:
            place = min(int(math.log2(moved)), len(self.bytes_by_working_set) - 1)
            self.bytes_by_working_set[place] += moved
        return results


def _moved_bytes(func: Any, args: Any, kwargs: Mapping[str, Any], results: Any) -> float:
    name, schema = func._schema.name.partition("::")[2], func._schema
    read: dict[Any, int] = {}
    changed: dict[Any, int] = {}
    for argument, value in zip(schema.arguments, args, strict=False):
        _sort(argument, value, read, changed)
    for argument in schema.arguments[len(args) :]:
        _sort(argument, kwargs.get(argument.name), read, changed)
    known = read | changed
    made = {key: size for key, size in _tensors(results).items() if key not in known}
    storages = {key[0] for key in known}
    is_view = not changed and all(key[0] in storages for key in _tensors(results))
    if name in NOT_TOUCHED or is_view:
        return 0.0
    rewritten = 0 if name in ONLY_WRITTEN else sum(changed.values())
    return float(sum(known.values()) + rewritten + sum(made.values()))


def _sort(argument: Any, value: Any, read: dict[Any, int], changed: dict[Any, int]) -> None:
    is_changed = argument.alias_info is not None and argument.alias_info.is_write
    (changed if is_changed else read).update(_tensors(value))


def _tensors(value: Any) -> dict[Any, int]:
    """Bytes of the tensors in a value, by what tells them apart; repeated elements of an expanded one count once."""
    found = {}
    for tensor in tree_leaves(value):
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel():
            storage = tensor.untyped_storage()
            key = (storage.data_ptr() or id(storage), tensor.storage_offset(), tensor.numel())
            own = math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
            found[key] = own * tensor.element_size()
    return found


def _attention() -> dict[Any, Callable[..., int]]:
    """Torch's own formulas for CUDA's fused attention, for the other devices' operations."""
    named: dict[str, Callable[..., int]] = dict.fromkeys(FORWARD, _forward_flops)
    named |= dict.fromkeys(BACKWARD, _backward_flops)
    return {getattr(torch.ops.aten, name): count for name, count in named.items() if hasattr(torch.ops.aten, name)}


def _forward_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _backward_flops(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))

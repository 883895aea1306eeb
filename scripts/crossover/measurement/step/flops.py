"""The work of a step: floating-point operations as torch counts them, and the bytes that its operators move.

Operations are those of matmuls, convolutions and attention, nothing else; none are given for a step with recurrent
layers, transforms or decompositions, whose products torch does not count.
A multiplication and an addition are two. The step is counted as it runs eagerly, with accumulated batches, repeated
forward passes of checkpoints and an optimizer's matmuls. So the number says what the step asks for, whatever a compiler
or a graph leaves out.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from crossover.measurement.step.devices import OpenDevice

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


def count_work(
    step: Callable[[], object],
    execution: str,
    target: OpenDevice,
    watch: AbstractContextManager[object] = nullcontext(),  # noqa: B008 - it has no state
) -> dict[str, Any]:
    """Run a task's step once, always eagerly, and count what its operators do, as columns of `Measurement`.

    `watch` is a mode that looks at every operator too. The counters about treble the step's launch time.
    """
    eager = torch.compiler.set_stance("force_eager") if execution == "compile" else nullcontext()
    formulas = {**flop_registry, **_attention()}
    work = OperatorWork(formulas.keys(), target)
    counting: Any = FlopCounterMode(display=False, custom_mapping=_attention())
    counting.mod_tracker = NoModules()
    with eager, work:
        work.find_least(target.device)
        with counting as counter, watch:  # come last, so that they are no part of an operator's time
            step()
    target.synchronise()
    return {"flops_per_step": None if work.uncounted else int(counter.get_total_flops()), **work.columns()}


class NoModules(nullcontext[None]):
    """In place of the counter's record of modules, whose hooks refuse derivatives within a forward pass."""

    parents = frozenset({"Global"})


UNCOUNTED = re.compile(r"rnn|lstm|gru|_trilinear|fft|cdist|linalg|cholesky|_scaled_grouped|_grouped_mm")
"""Operators that multiply, but whose operations torch's counter leaves out; a step with one has no number."""

ONLY_WRITTEN = ("copy_", "zero_", "fill_")
"""Operators that do not read what they change."""

NOT_TOUCHED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "resize_", "set_")
"""Operators that move nothing."""


class OperatorWork(TorchDispatchMode):
    """Sums up what operators move and how long they take, products apart from all others.

    An operator moves each of its tensors once at least. Its bytes are kept by their own number, since what fits into a
    cache moves faster. On a device with a queue the host gets ahead before each operator, so that its time is the
    device's alone.
    """

    def __init__(self, products: Collection[Any], target: OpenDevice) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = products
        self.mark = target.mark or time.perf_counter
        self.between_s = target.between_s or (lambda begin, end: end - begin)
        self.occupy = target.occupy or (lambda: None)
        self.timed = target.mark is not None or target.device.type == "cpu"
        self.bytes_by_working_set = {True: [0.0] * PLACES, False: [0.0] * PLACES}
        """By whether they are products; at place k for operators that touch from 2^k to 2^(k+1) bytes."""
        self.marks: dict[bool, list[tuple[Any, Any]]] = {True: [], False: []}
        self.least: dict[bool, list[tuple[Any, Any]]] = {True: [], False: []}
        """The same of tiny operators."""
        self.uncounted = False
        """Whether an operator's products are not among the counted ones."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.occupy()
        begin = self.mark()
        results = func(*args, **(kwargs or {}))
        end = self.mark()
        moved = _moved_bytes(func, args, kwargs or {}, results)
        self.uncounted = self.uncounted or UNCOUNTED.search(func.overloadpacket.__name__) is not None
        if moved > 0:
            is_product = func.overloadpacket in self.products
            self.bytes_by_working_set[is_product][min(int(math.log2(moved)), PLACES - 1)] += moved
            self.marks[is_product].append((begin, end))
        return results

    def find_least(self, device: torch.device) -> None:
        """Take what tiny operators of both kinds take as what any of the kind does beside its work."""
        number = torch.ones(1, 1, device=device)
        self.marks = {True: [], False: []}
        for _ in range(TINY):
            number.add_(1)
            torch.mm(number, number)
        self.least, self.marks = self.marks, {True: [], False: []}
        self.bytes_by_working_set = {True: [0.0] * PLACES, False: [0.0] * PLACES}

    def columns(self) -> dict[str, Any]:
        """The sums, as columns of `Measurement`."""
        found: dict[str, Any] = {
            f"{name}_bytes_by_working_set": self.bytes_by_working_set[is_product] for name, is_product in GROUPS.items()
        }
        if self.timed:
            for name, is_product in GROUPS.items():
                least_s = statistics.median(self.between_s(*pair) for pair in self.least[is_product])
                times_s = (self.between_s(*pair) for pair in self.marks[is_product])
                found[f"{name}_s"] = math.fsum(max(0.0, time_s - least_s) for time_s in times_s)
        return found


PLACES = 48
TINY = 20
"""Tiny operators of each kind whose median time counts."""
GROUPS = {"products": True, "others": False}


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
    if name in NOT_TOUCHED or is_view or _crosses_devices((args, kwargs, results)):
        return 0.0
    rewritten = 0 if name in ONLY_WRITTEN else sum(changed.values())
    return float(sum(known.values()) + rewritten + sum(made.values()))


def _crosses_devices(values: Any) -> bool:
    """Whether an operator copies between host and device, which is no work of either's memory alone."""
    return len({leaf.device.type for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.dim()}) > 1


def _sort(argument: Any, value: Any, read: dict[Any, int], changed: dict[Any, int]) -> None:
    is_changed = argument.alias_info is not None and argument.alias_info.is_write
    (changed if is_changed else read).update(_tensors(value))


def _tensors(value: Any) -> dict[Any, int]:
    """Bytes of the tensors in a value, by what tells them apart; repeated elements of an expanded one count once."""
    found = {}
    for tensor in tree_leaves(value):
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel():
            key = (*_memory_of(tensor), tensor.numel())
            found[key] = _elements(tensor) * tensor.element_size()
    return found


def _elements(tensor: torch.Tensor) -> int:
    """Elements in memory: repeated ones of an expanded tensor count once."""
    if tensor.is_nested:
        return tensor.numel()
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)


def _memory_of(tensor: torch.Tensor) -> tuple[Any, Any]:
    """What tells a tensor's memory apart; those that torch.func wraps have none of their own."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr() or id(storage), tensor.storage_offset()
    except (RuntimeError, NotImplementedError):
        return id(tensor), 0


def _attention() -> dict[Any, Callable[..., int]]:
    """Torch's own formulas for CUDA's fused attention, for the other devices' operations."""
    named: dict[str, Callable[..., int]] = dict.fromkeys(FORWARD, _forward_flops)
    named |= dict.fromkeys(BACKWARD, _backward_flops)
    return {getattr(torch.ops.aten, name): count for name, count in named.items() if hasattr(torch.ops.aten, name)}


def _forward_flops(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _backward_flops(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))

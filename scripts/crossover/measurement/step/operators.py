"""FLOPs, bytes and times of torch's operators in a step, and the host's work between them.

The step runs eagerly, so the counts do not depend on what a compiler or a graph eliminates. They include all
accumulated batches, forward passes repeated by checkpoints, and the optimizer's products.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.flops import flop_counter, is_uncounted


def count_work(
    step: Callable[[], object],
    execution: str,
    target: OpenDevice,
    watch: AbstractContextManager[object] | None = None,
) -> dict[str, Any]:
    """Run a task's step once, eagerly, and count its operators' work; returns columns of `Measurement`."""
    eager = torch.compiler.set_stance("force_eager") if execution == "compile" else nullcontext()
    counting = flop_counter()
    work = OperatorWork(counting.flop_registry, target)
    with eager, work:
        work.time_tiny_operators(target.device)
        # The counter and `watch` are entered last, and so called first, so that operators' times do not include them.
        with counting as counter, watch or nullcontext():
            step()
    target.synchronise()
    flops = math.nan if work.uncounted else counter.get_total_flops()
    return {"flops_per_step": None if math.isnan(flops) else int(flops), **work.columns()}


ONLY_WRITTEN = ("copy_", "zero_", "fill_")
"""In-place operators that overwrite a tensor without reading it."""

NOT_TOUCHED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "resize_", "set_")

BINS = 48
TINY_OPERATORS = 20
"""Tiny operators timed in each group; their median time is subtracted."""
GROUPS = ("products", "others")
"""Groups of operators, and prefixes of their columns."""


class OperatorWork(TorchDispatchMode):
    """Sums the bytes that operators move, and the operators' times, for products and for other operators.

    Each operator is assumed to read its inputs and write its outputs once. Bytes are binned by the operator's working
    set, since data that fit into a cache move faster. A CUDA device is kept busy before each operator, so that the host
    gets ahead and the time is the device's.
    """

    def __init__(self, products: Collection[Any], target: OpenDevice) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.products = products
        self.mark = target.mark or time.perf_counter
        self.between_s = target.between_s or (lambda begin, end: end - begin)
        self.occupy = target.occupy or (lambda: None)
        self.timed = target.mark is not None or target.device.type == "cpu"
        self.uncounted = False
        self._clear()

    def _clear(self) -> None:
        self.bytes_by_working_set = {group: [0.0] * BINS for group in GROUPS}
        """Bytes moved; bin k is for operators that move from 2^k to 2^(k+1) bytes."""
        self.marks: dict[str, list[tuple[Any, Any]]] = {group: [] for group in GROUPS}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.occupy()
        begin = self.mark()
        results = func(*args, **(kwargs or {}))
        end = self.mark()
        moved = _moved_bytes(func, args, kwargs or {}, results)
        has_formula = func.overloadpacket in self.products
        self.uncounted = self.uncounted or (not has_formula and is_uncounted(func))
        if moved > 0:
            group = "products" if has_formula else "others"
            self.bytes_by_working_set[group][min(int(math.log2(moved)), BINS - 1)] += moved
            self.marks[group].append((begin, end))
        return results

    def time_tiny_operators(self, device: torch.device) -> None:
        number = torch.ones(1, 1, device=device)
        self._clear()
        for _ in range(TINY_OPERATORS):
            number.add_(1)
            torch.mm(number, number)
        self.tiny_marks = self.marks
        self._clear()

    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            f"{group}_bytes_by_working_set": sizes for group, sizes in self.bytes_by_working_set.items()
        }
        if self.timed:
            for group in GROUPS:
                tiny_s = statistics.median(self.between_s(*pair) for pair in self.tiny_marks[group])
                times_s = (self.between_s(*pair) for pair in self.marks[group])
                columns[f"{group}_s"] = math.fsum(max(0.0, time_s - tiny_s) for time_s in times_s)
        return columns


def _moved_bytes(func: Any, args: Any, kwargs: Mapping[str, Any], results: Any) -> float:
    """Bytes that an operator reads and writes; 0 for a view or a copy between host and device."""
    name, schema = func._schema.name.partition("::")[2], func._schema
    read: dict[Any, int] = {}
    changed: dict[Any, int] = {}
    values = [*args, *(kwargs.get(argument.name) for argument in schema.arguments[len(args) :])]
    for argument, value in zip(schema.arguments, values, strict=False):
        is_changed = argument.alias_info is not None and argument.alias_info.is_write
        (changed if is_changed else read).update(_tensor_bytes(value))
    inputs, outputs = read | changed, _tensor_bytes(results)
    storages = {key[0] for key in inputs}
    is_view = not changed and all(key[0] in storages for key in outputs)
    leaves = tree_leaves((args, kwargs, results))
    device_types = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.dim()}
    # A copy between host and device is limited by the link between them, not by a memory.
    if name in NOT_TOUCHED or is_view or len(device_types) > 1:
        return 0.0
    rewritten = 0 if name in ONLY_WRITTEN else sum(changed.values())
    created = sum(size for key, size in outputs.items() if key not in inputs)
    return float(sum(inputs.values()) + rewritten + created)


def _tensor_bytes(value: Any) -> dict[Any, int]:
    """Bytes of the dense tensors in a value, by storage, offset and size."""
    return {
        (*_storage_key(tensor), tensor.numel()): _stored_elements(tensor) * tensor.element_size()
        for tensor in tree_leaves(value)
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel()
    }


def _stored_elements(tensor: torch.Tensor) -> int:
    """Number of elements in memory; repetitions by an expanded tensor count once."""
    if tensor.is_nested:
        return tensor.numel()
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)


def _storage_key(tensor: torch.Tensor) -> tuple[Any, Any]:
    """A tensor's storage and offset, or its identity if it has no storage, as within torch.func."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr() or id(storage), tensor.storage_offset()
    except (RuntimeError, NotImplementedError):
        return id(tensor), 0


CALLING_S = 1e-4
"""Seconds of each gap that do not count as host work, since Python takes tens of microseconds to call an operator."""

GAP_STEPS = 5
"""Number of steps with measured gaps; their minimum is used, since a stall of the machine is not work."""


class OperatorGaps(TorchDispatchMode):
    """Sums the gaps between operators, each less CALLING_S."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.clock_s = clock_s
        self.seconds = 0.0
        self.gap_begin_s = clock_s()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.end_gap()
        result = func(*args, **(kwargs or {}))
        self.gap_begin_s = self.clock_s()
        return result

    def end_gap(self) -> None:
        self.seconds += max(0.0, self.clock_s() - self.gap_begin_s - CALLING_S)


def host_work_s(step: Callable[[], None], clock_s: Callable[[], float] = time.perf_counter) -> float:
    """Seconds per step of host work outside of torch's operators, such as NumPy's or a tokenizer's."""
    seconds: list[float] = []
    for _ in range(GAP_STEPS):
        with OperatorGaps(clock_s) as gaps:
            step()
            gaps.end_gap()
        seconds.append(gaps.seconds)
    return min(seconds)

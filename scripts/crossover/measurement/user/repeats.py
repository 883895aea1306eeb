"""Whether each call of a step does the work of its first one.

A benchmark calls a step many times on the same data. A step that uses up an iterator, fills a cache, sorts in place or
remembers what it has visited works in its first call only. Its calls on new data are compared with calls after many,
for a function by their time, for a model by torch's operations.
"""

from __future__ import annotations

import gc
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.measurement.step.execution import compiled_graphs
from crossover.measurement.step.trees import Change, map_tensors
from crossover.measurement.user.captured import captured

VANISHED = 10.0
"""Ratio of the first call's time to a later one's from which the work counts as gone."""

SHRUNK = 3.0
"""Ratio from which it is doubtful; new memory and cold caches have made first calls up to twice as slow."""

LEAST_S = {VANISHED: 200e-6, SHRUNK: 1e-3}
"""Least difference in seconds for each ratio, since the first call of new code is slower, by up to 60 us of NumPy's."""

COMPILERS = ("cupy", "jax", "numba", "taichi", "tensorflow", "triton")
"""Packages that compile a function in its first call."""

ADVICE = "let each call start from the same data, or leave to `build` what is done once"

FORGETFUL = 2.0
"""Ratio of the operations on a new batch to those on the batch before, above which a model remembers its batch."""

USED_UP = (map, filter, zip, enumerate, reversed)


def worked_s(call: Callable[[], object], clock_ns: Callable[[], int] = time.process_time_ns) -> float:
    """CPU seconds of this process in a call; waiting, as for new worker processes, is no work."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start_ns = clock_ns()
        call()
        return (clock_ns() - start_ns) * 1e-9
    finally:
        if was_enabled:
            gc.enable()


def verdict(first_s: Sequence[float], later_s: Sequence[float], may_compile: bool) -> tuple[str | None, str | None]:
    """Reasons why a step is invalid, or why it is not checked, from seconds of first calls and of calls after many.

    The least of each counts. A first call that compiles is not told from one that alone works.
    """
    first, later = min(first_s), min(later_s)
    times = f"a call on new data takes {first:.2g} s of CPU time, after many calls {later:.2g} s"
    if first > VANISHED * later and first - later > LEAST_S[VANISHED]:
        if may_compile:
            return None, f"{times}: it compiles itself in the first call, or only that call does the work"
        return f"only its first call does the work: {times}; {ADVICE}", None
    if first > SHRUNK * later and first - later > LEAST_S[SHRUNK]:
        return None, f"{times}: perhaps its first call leaves less work to the later ones; {ADVICE}"
    return None, None


def may_compile(run: Any) -> bool:
    scripted = captured(run, (torch.jit.ScriptFunction, torch.jit.ScriptModule))
    return bool(scripted) or compiled_graphs() > 0 or any(name in sys.modules for name in COMPILERS)


def used_up(run: Callable[[], object]) -> str | None:
    """The type of an iterator that a step has used up and does not make anew; None if there is none."""
    exhausted = [value for value in captured(run, Iterator).values() if _is_exhausted(value)]
    if not exhausted:
        return None
    run()
    kept = {id(value) for value in captured(run, Iterator).values()}
    return next((type(value).__name__ for value in exhausted if id(value) in kept), None)


def _is_exhausted(iterator: Any) -> bool:
    """True for an iterator of Python that has ended; others are not asked, since they may wait for input."""
    if isinstance(iterator, types.GeneratorType):
        return iterator.gi_frame is None
    if isinstance(iterator, USED_UP):
        return next(iterator, USED_UP) is USED_UP
    is_builtin = type(iterator).__module__ == "builtins" and hasattr(iterator, "__length_hint__")
    return is_builtin and iterator.__length_hint__() == 0


class Operations(TorchDispatchMode):
    """Counts torch's operations, and the elements that they return."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        self.count = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        self.count += 1
        self.elements += sum(tensor.numel() for tensor in tree_leaves(results) if isinstance(tensor, torch.Tensor))
        return results


def remembered(run: Callable[..., object], batch: Any, batched: bool) -> str | None:
    """Why a step does less work on a batch that it has seen than on a new one; None if it does not, or if neither runs.

    A new batch has the same rows: if each row is a sample, in another order, else copied. Of two runs on new batches
    the one with less work counts, and of two on the same batch the one with more, since a step may skip work at random.
    """

    def roll(rows: int, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.roll(rows, 0) if tensor.dim() else tensor.clone()

    copies: list[list[Change]] = [[torch.clone, torch.clone]]
    if batched:  # a step may need the order of its rows, such as decreasing lengths
        copies.insert(0, [partial(roll, 1), partial(roll, 2)])
    with torch.compiler.set_stance("force_eager"):
        for changes in copies:
            with suppress(Exception):
                same = [_work(run, batch) for _ in range(2)]
                new = [_work(run, map_tensors(change, batch)) for change in changes]
                count, elements = (max(values) for values in zip(*same, strict=True))
                new_count, new_elements = (min(values) for values in zip(*new, strict=True))
                if new_count <= FORGETFUL * count and new_elements <= FORGETFUL * elements:
                    return None
                return (
                    "its step remembers what it has computed for its batch: on a new batch it runs "
                    f"{new_count} operations of torch, on the same batch {count}; compute it in each step"
                )
    return None


def _work(run: Callable[..., object], batch: Any) -> tuple[int, int]:
    """Numbers of operations, and of the elements that they return."""
    operations = Operations()
    with operations:
        run(*batch)
    return operations.count, operations.elements

"""Whether each call of a step does the work of its first one.

A benchmark calls a step many times on the same data. A step that uses up an iterator, fills a cache, sorts in place or
remembers what it has visited works in its first call only. Its calls on new data are compared with calls after many,
for a function by their time and results, for a model by torch's operations and their FLOPs.
"""

from __future__ import annotations

import gc
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.machine.counters import busy_cores, queued_ns
from crossover.measurement.step.execution import compiled_graphs
from crossover.measurement.step.flops import flop_counter
from crossover.measurement.step.trees import Change, map_tensors
from crossover.measurement.user.captured import captured

VANISHED = 10.0
"""Ratio of the first call's time to a later one's from which the work counts as gone."""

SHRUNK = 3.0
"""Ratio from which it is doubtful; new memory and cold caches have made first calls up to twice as slow."""

LEAST_S = {VANISHED: 200e-6, SHRUNK: 1e-3}
"""Least difference in seconds for each ratio, since the first call of new code is slower, by up to 60 us of NumPy's."""

LEAST_CONFIRMED_S = 20e-6
"""The same for VANISHED after CONFIRMATIONS, in which all code has run before."""

CONFIRMATIONS = 3
"""Number of further first calls on new data, on one thread, where two differ by less than LEAST_S or CHANCE_S.

With more threads, a first call also wakes them and fills the memory of each.
"""

CHANCE_S = 0.1
"""Least difference in CPU time that cannot be chance: threads spin while they wait for one whose core others use."""

LEAST_WAIT_S = 1e-3
"""Least difference in wall-clock time from which a first call is said to wait; other processes delay it too."""

REST_S, LONGEST_SPIN_S = 0.01, 0.5
"""Time for which threads must rest, in seconds, and after which a call is timed even if they do not."""

COMPILERS = ("cupy", "jax", "numba", "taichi", "tensorflow", "triton")
"""Packages that compile a function in its first call."""

ADVICE = "let each call start from the same data, or leave to `build` what is done once"

FORGETFUL = 2.0
"""Ratio of the operations on a new batch to those on the batch before, above which a model remembers its batch."""

FEWER_FLOPS = 1.5
"""The same for FLOPs, which do not count what is made once, such as masks, but may differ if layers are left out."""

USED_UP = (map, filter, zip, enumerate, reversed)


class Spent(NamedTuple):
    """Duration of a call in seconds."""

    cpu_s: float
    """CPU time of this process, which does not count waiting, such as for new worker processes."""
    wall_s: float
    """Wall-clock time."""
    queued_s: float = 0.0
    """Time for which threads of this process waited for a core, summed over the threads."""


def spent(
    call: Callable[[], object],
    cpu_ns: Callable[[], int] = time.process_time_ns,
    wall_ns: Callable[[], int] = time.perf_counter_ns,
    queued_ns: Callable[[], int] = queued_ns,
) -> Spent:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start_queued_ns = queued_ns()
        start_wall_ns, start_ns = wall_ns(), cpu_ns()
        call()
        took_ns, passed_ns = cpu_ns() - start_ns, wall_ns() - start_wall_ns
        return Spent(took_ns * 1e-9, passed_ns * 1e-9, (queued_ns() - start_queued_ns) * 1e-9)
    finally:
        if was_enabled:
            gc.enable()


def wait_for_threads(
    cpu_ns: Callable[[], int] = time.process_time_ns, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the threads of this process rest, for at most LONGEST_SPIN_S.

    Those of NumPy's and torch's libraries spin after their work, in a first call after that of building its data.
    """
    for _ in range(round(LONGEST_SPIN_S / REST_S)):
        if busy_cores(REST_S, cpu_ns, sleep) < 0.1:
            return


def verdict(
    firsts: Sequence[Spent], laters: Sequence[Spent], may_compile: bool, least_s: float = LEAST_S[VANISHED]
) -> tuple[str | None, str | None]:
    """Reasons why a step is invalid, or why it is not checked, from first calls and calls after many.

    The least of each counts. A first call that compiles is not told from one that alone works. Wall-clock time makes no
    step invalid, since other processes lengthen it: from that of first calls, all time that a thread waited for a core
    is taken. `least_s` is the least difference in CPU time that counts.
    """
    first, later = _least_cpu_s(firsts), _least_cpu_s(laters)
    first_wall, later_wall = min(call.wall_s - call.queued_s for call in firsts), min(call.wall_s for call in laters)
    times = f"a call on new data takes {first:.2g} s of CPU time, after many calls {later:.2g} s"
    if first > VANISHED * later and first - later > least_s:
        if may_compile:
            return None, f"{times}: it compiles itself in the first call, or only that call does the work"
        return f"only its first call does the work: {times}; {ADVICE}", None
    if first > SHRUNK * later and first - later > LEAST_S[SHRUNK]:
        return None, f"{times}: perhaps its first call leaves less work to the later ones; {ADVICE}"
    if first_wall > VANISHED * later_wall and first_wall - later_wall > LEAST_WAIT_S:
        return None, (
            f"a call on new data takes {first_wall:.2g} s, after many calls {later_wall:.2g} s, and little of it is "
            "CPU time: perhaps only its first call waits, such as for a file, a network or a sleep, or other processes "
            f"delayed it; {ADVICE}"
        )
    return None, None


def differ_by(firsts: Sequence[Spent], laters: Sequence[Spent], ratio: float, least_s: float, most_s: float) -> bool:
    """True if first calls take over `ratio` times the CPU time of calls after many, by `least_s` to `most_s` more."""
    first, later = _least_cpu_s(firsts), _least_cpu_s(laters)
    return first > ratio * later and least_s < first - later <= most_s


def _least_cpu_s(calls: Sequence[Spent]) -> float:
    return min(call.cpu_s for call in calls)


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

    Each new batch is run once, then twice again. Of the first runs on two new batches the one with less work counts,
    and of the others the one with more, since a step may skip work at random.
    """
    ways: list[list[Change]] = [[partial(_resampled, seed=seed) for seed in (1, 2)]] if batched else []
    ways += [[_shrunk, _shrunk], [torch.clone, torch.clone]]  # a step may need its rows or values as they are
    with torch.compiler.set_stance("force_eager"):
        for changes in ways:
            with suppress(Exception):
                works = [_works(run, map_tensors(change, batch), 3) for change in changes]
                new = [min(values) for values in zip(*(first for first, *_ in works), strict=True)]
                same = [max(values) for values in zip(*(work for _, *again in works for work in again), strict=True)]
                if new[0] > FORGETFUL * same[0] or new[1] > FORGETFUL * same[1]:
                    compared = f"runs {new[0]} operations of torch, on the same batch {same[0]}"
                elif new[2] > FEWER_FLOPS * same[2]:
                    compared = f"takes {new[2]:.3g} FLOPs, on the same batch {same[2]:.3g}"
                else:
                    return None
                return (
                    "its step remembers what it has computed for its batch: on a new batch it "
                    f"{compared}; compute it in each step"
                )
    return None


def dwindled(fresh: Callable[..., object], used: Callable[..., object], batch: Any) -> tuple[str | None, str | None]:
    """Reasons why a model's step is invalid, or why it is not checked, from its FLOPs in a first call and after many.

    `fresh` is the step of a model that has never run. Operations alone do not tell: a first call may make masks or
    tables of positions, which take few FLOPs. Both are None if the FLOPs are unknown.
    """
    with torch.compiler.set_stance("force_eager"), suppress(Exception):
        first = _works(fresh, batch, 1)[0][2]
        later = max(flops for *_, flops in _works(used, batch, 2))
        counts = f"its first call takes {first:.3g} FLOPs, a call after many {later:.3g}"
        if first > VANISHED * later:
            return f"only its first calls do the work, of which later ones use the result: {counts}; {ADVICE}", None
        if first > FEWER_FLOPS * later:
            return None, f"{counts}: perhaps its first call leaves less work to the later ones; {ADVICE}"
    return None, None


def _resampled(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Rows drawn with replacement, the same ones of each tensor and in their order, with other values if not integers.

    Rows stay valid, such as ids beside their mask, and lengths stay sorted.
    """
    if not tensor.dim():
        return _shrunk(tensor)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(tensor), (len(tensor),), generator=generator).sort().values
    return _shrunk(tensor[rows.to(tensor.device)])


def _shrunk(tensor: torch.Tensor) -> torch.Tensor:
    """A copy, whose values are up to 3 % closer to 0 if they are no integers, so that they stay in their range."""
    return tensor * (1 - torch.rand_like(tensor) / 32) if tensor.is_floating_point() else tensor.clone()


def _works(run: Callable[..., object], batch: Any, calls: int) -> list[tuple[int, int, float]]:
    """The operations of each call, the elements that these return, and the FLOPs, NaN if unknown."""
    works = []
    for _ in range(calls):
        with flop_counter() as flops, Operations() as operations:
            run(*batch)
        works.append((operations.count, operations.elements, flops.get_total_flops()))
    return works

"""Interleaved timing of several methods to run a step, so that changes of the machine's speed affect all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection

ROUNDS = 3
"""Blocks of each method."""


@dataclass(frozen=True)
class Method:
    """A method to run a step."""

    step: Step
    setting: Callable[[], AbstractContextManager[object]] = nullcontext
    """Context in which it runs; entering and leaving is not timed."""


def time_in_turns(methods: Mapping[str, Method], block_min_s: float, watch: Stopwatch) -> dict[str, float]:
    """Seconds of a step in each method: the median of synchronised blocks that last about `block_min_s` each.

    The first method is the step as it is; another that raises is left out. A block begins with a step that does not
    count. A step as long as a block is a block by itself, and the two runs that showed its length count. Every second
    round runs backwards, so that a steady drift affects all methods alike.
    """
    as_it_is = next(iter(methods))
    samples_s: dict[str, list[float]] = {name: [] for name in methods}

    def add_block(name: str, steps: int) -> None:
        method = methods[name]
        try:
            with method.setting():
                if steps > 1:
                    method.step()
                samples_s[name].append(time_block(method.step, steps, watch).wall_s / steps)
        except Exception:
            if name == as_it_is:
                raise
            del samples_s[name]

    with without_garbage_collection():
        for name in [*methods, *list(methods)[::-1]]:
            if name in samples_s:
                add_block(name, 1)
        steps = {name: max(1, math.ceil(block_min_s / max(min(times_s), 1e-9))) for name, times_s in samples_s.items()}
        for name, times_s in samples_s.items():
            if steps[name] > 1:
                times_s.clear()
        for number in range(ROUNDS):
            for name in list(methods)[:: -1 if number % 2 else 1]:
                if name in samples_s and len(samples_s[name]) < ROUNDS:
                    add_block(name, steps[name])
    return {name: statistics.median(times_s) for name, times_s in samples_s.items()}

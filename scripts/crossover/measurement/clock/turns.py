"""Several ways to run a step, timed in turns, so that a machine that changes its pace changes it for all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from crossover.measurement.clock.timing import Step, Stopwatch, time_block, without_garbage_collection

ROUNDS = 3
"""Blocks of each way."""


@dataclass(frozen=True)
class Way:
    """A way to run a step."""

    step: Step
    setting: Callable[[], AbstractContextManager[object]] = nullcontext
    """What holds while it runs, and is not timed."""


def time_in_turns(ways: Mapping[str, Way], block_min_s: float, watch: Stopwatch) -> dict[str, float]:
    """Seconds of a step in each way: the median of synchronised blocks that last about `block_min_s` each.

    A block begins with a step that does not count. Caches and threads matter little to a step as long as a block, so it
    is a block by itself, and the two runs that showed its length count. Every second round runs backwards, so that a
    steady drift adds as much to each way.
    """

    def block_s(way: Way, steps: int) -> float:
        with way.setting():
            if steps > 1:
                way.step()
            return time_block(way.step, steps, watch).wall_s

    with without_garbage_collection():
        first_s = {name: [block_s(way, 1)] for name, way in ways.items()}
        for name in reversed(list(ways)):
            first_s[name].append(block_s(ways[name], 1))
        steps = {name: max(1, math.ceil(block_min_s / max(min(own), 1e-9))) for name, own in first_s.items()}
        found = {name: first_s[name] if steps[name] == 1 else [] for name in ways}
        for number in range(ROUNDS):
            for name in list(ways)[:: -1 if number % 2 else 1]:
                if len(found[name]) < ROUNDS:
                    found[name].append(block_s(ways[name], steps[name]) / steps[name])
    return {name: statistics.median(samples_s) for name, samples_s in found.items()}

"""Latency of single steps: measured rightly, and with the common mistakes, in turns.

The mistakes are those of A. Geifman (Deci), "The correct way to measure inference time of deep neural networks": no
warm-up, a host clock that does not wait for the device, transfers within the measured step. (The fourth, a single
sample, is any one of the right latencies.)

The ways take turns of a few steps, in a shuffled order that is then run backwards: else a machine that changes its pace
would show it as a mistake. A turn begins synchronised and with a step that does not count, so that nothing of one way
shows in another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from crossover.measurement.clock.timing import (
    NANO,
    Step,
    Stopwatch,
    collect_if_due,
    time_block,
    too_slow,
    without_garbage_collection,
)
from crossover.percentiles import LATENCY_PERCENTS, percentile_of

Way = Callable[[int], list[float]]
"""Measures so many steps in one way and returns their seconds; the device is idle before and after."""

TURN_STEPS = 50
"""Enough for a deep network to fill a GPU's queue early in the turn: most steps show what a full queue does."""


def fitting(steps: int, step_s: float, longest_s: float) -> int:
    """As many of `steps` as fit into `longest_s`, but a turn at least."""
    if steps * step_s <= longest_s:
        return steps
    return min(steps, max(TURN_STEPS, int(longest_s / step_s)))


def measure_latencies(ways: Mapping[str, Way], steps: int, seed: int) -> dict[str, Any]:
    """Columns of `steps` steps measured in each way, in turns whose order the seed sets, with percentiles.

    A percentile is given with its interval, so that few steps have no 95th or 99th.
    """
    order, random = list(ways), Random(seed)
    found: dict[str, list[float]] = {way: [] for way in ways}
    with without_garbage_collection():
        for turn, done in enumerate(range(0, steps, TURN_STEPS)):
            if turn % 2:
                order.reverse()  # a steady drift then adds as much to each way
            else:
                random.shuffle(order)
            for way in order:
                ways[way](1)
                found[way] += ways[way](min(TURN_STEPS, steps - done))
    return {**found, **percentile_columns(found["latencies_s"])}


def percentile_columns(samples_s: list[float]) -> dict[str, float | None]:
    """The percentiles of latencies, and the ends of their intervals."""
    columns: dict[str, float | None] = {}
    for percent in LATENCY_PERCENTS:
        found = percentile_of(samples_s, percent)
        ends = (None, None, None) if found is None else (found.value, found.low, found.high)
        columns |= {f"latency_p{percent}{end}_s": value for end, value in zip(("", "_low", "_high"), ends, strict=True)}
    return columns


def right_ways(step: Step, watch: Stopwatch) -> dict[str, Way]:
    """By column: the host's clock around synchronised steps and, on a device with marks, the time between two."""
    ways: dict[str, Way] = {"latencies_s": lambda steps: time_latencies(step, steps, watch)}
    if watch.between_s:
        ways["latencies_device_s"] = lambda steps: time_device_latencies(step, steps, watch)
    return ways


def mistaken_ways(step: Step, step_with_transfers: Step | None, watch: Stopwatch) -> dict[str, Way]:
    """By column: the mistakes that a warm trial on an accelerator can make. On a CPU they are the right way again."""
    ways: dict[str, Way] = {"latencies_unsynchronised_s": lambda steps: time_unsynchronised(step, steps, watch)}
    if step_with_transfers:
        ways["latencies_transfer_s"] = lambda steps: time_latencies(step_with_transfers, steps, watch)
    return ways


def time_latencies(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds of each of `steps` individually synchronised steps: what one request waits for."""
    plain = replace(watch, mark=None, between_s=None)  # a mark would be part of each latency
    return [time_block(step, 1, plain).wall_s for _ in range(steps)]


def time_device_latencies(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds between two marks in the device's queue around each of `steps` synchronised steps."""
    spans_s = [time_block(step, 1, watch).device_s for _ in range(steps)]
    return [span_s for span_s in spans_s if span_s is not None]


def time_cold(
    step: Step,
    steps: int,
    watch: Stopwatch,
    longest_s: float = math.inf,
    time_limit_s: float = math.inf,
    later_steps: int = 0,
) -> tuple[float, ...]:
    """Seconds of the very first `steps` steps of the process, at least two, each synchronised: no warm-up.

    Only as many as fit into `longest_s`. Raises TooSlowError if the second step shows that these and `later_steps`
    would outlast `time_limit_s`.
    """
    first_s = time_latencies(step, 1, watch)
    with without_garbage_collection():
        second_s = time_latencies(step, 1, watch)
        steps = fitting(steps, second_s[0], longest_s)
        if slow := too_slow(first_s[0] + second_s[0], second_s[0], steps - 2 + later_steps, time_limit_s):
            raise slow
        return (*first_s, *second_s, *time_latencies(step, steps - 2, watch))


def time_unsynchronised(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds that the host's clock shows for each of `steps` steps that nobody waits for.

    The device is waited for before the first and after the last. Once a deep network has filled a GPU's queue of about
    a thousand launches, the latencies leap from the host's time to the device's; such a clock shows that, so it stays.
    """
    found_s = []
    watch.synchronise()
    for _ in range(steps):
        start_ns = watch.wall_ns()
        step()
        found_s.append((watch.wall_ns() - start_ns) * NANO)
    watch.synchronise()
    collect_if_due()
    return found_s

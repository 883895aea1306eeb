"""Latency of single steps, measured correctly and with common mistakes.

The mistakes are three of those listed by A. Geifman (Deci), "The correct way to measure inference time of deep
neural networks": no warm-up, a host clock that does not wait for the device, transfers within the measured step.

After the warm-up, the methods take turns of up to LATENCY_TURN_STEPS steps. Their order is shuffled and, in the next
round, reversed, so that a change in the machine's speed does not look like the effect of a mistake. Each turn starts
with a synchronisation and a step that does not count. After OTHERS_STEPS only RIGHT goes on: its percentiles need many
steps, while the effect of a mistake needs many trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from crossover.config.studies import LATENCY_TURN_STEPS
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

Method = Callable[[int], list[float]]
"""Times a number of steps and returns the seconds of each; the device is idle before and after."""

RIGHT = "latencies_s"
"""The correct method on every device: the host's clock around each synchronised step."""

OTHERS_STEPS = 10 * LATENCY_TURN_STEPS
"""Maximum number of steps timed with each method other than RIGHT: five rounds and their reverses."""

LEAST_STEPS = 50
"""Number of steps that are timed even if they take too long, unless fewer are asked for."""


def fitting(steps: int, step_s: float, longest_s: float) -> int:
    """Reduce `steps` to the number that fits in `longest_s`, but not below LEAST_STEPS."""
    if steps * step_s <= longest_s:
        return steps
    return min(steps, max(LEAST_STEPS, int(longest_s / step_s)))


def measure_latencies(methods: Mapping[str, Method], steps: int, seed: int) -> dict[str, Any]:
    """Measure `steps` latencies with RIGHT, and up to OTHERS_STEPS of them with each other method, in turns.

    The seed sets the order. Returns a column for each method, and percentiles of RIGHT, which are None if `steps` is
    too small.
    """
    order, random = list(methods), Random(seed)
    latencies_s: dict[str, list[float]] = {method: [] for method in methods}

    def take_turn(method: str, turn_steps: int) -> None:
        methods[method](1)
        latencies_s[method] += methods[method](turn_steps)

    with without_garbage_collection():
        for turn, start in enumerate(range(0, min(steps, OTHERS_STEPS), LATENCY_TURN_STEPS)):
            if turn % 2:
                order.reverse()  # so that a steady drift affects all methods equally
            else:
                random.shuffle(order)
            for method in order:
                take_turn(method, min(LATENCY_TURN_STEPS, steps - start))
        if steps > OTHERS_STEPS:
            take_turn(RIGHT, steps - OTHERS_STEPS)
    columns: dict[str, Any] = {**latencies_s}
    for percent in LATENCY_PERCENTS:
        percentile = percentile_of(latencies_s[RIGHT], percent)
        for end, name in (("", "value"), ("_low", "low"), ("_high", "high")):
            columns[f"latency_p{percent}{end}_s"] = None if percentile is None else getattr(percentile, name)
    return columns


def correct_methods(step: Step, watch: Stopwatch) -> dict[str, Method]:
    """The correct methods by column: the host's clock around synchronised steps, and device timestamps if available."""
    methods: dict[str, Method] = {RIGHT: lambda steps: time_latencies(step, steps, watch)}
    if watch.between_s:
        methods["latencies_device_s"] = lambda steps: time_device_latencies(step, steps, watch)
    return methods


def mistaken_methods(step: Step, step_with_transfers: Step | None, watch: Stopwatch) -> dict[str, Method]:
    """The methods with mistakes that can be made on a warm accelerator, by column."""
    methods: dict[str, Method] = {"latencies_unsynchronised_s": lambda steps: time_unsynchronised(step, steps, watch)}
    if step_with_transfers:
        methods["latencies_transfer_s"] = lambda steps: time_latencies(step_with_transfers, steps, watch)
    return methods


def time_latencies(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds of each of `steps` steps, which are synchronised one by one."""
    plain = replace(watch, mark=None, between_s=None)  # otherwise timestamps would be part of each latency
    return [time_block(step, 1, plain).wall_s for _ in range(steps)]


def time_device_latencies(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds between the timestamps before and after each of `steps` steps, which are synchronised one by one."""
    spans_s = [time_block(step, 1, watch).device_s for _ in range(steps)]
    return [span_s for span_s in spans_s if span_s is not None]


def time_cold(
    step: Step, steps: int, watch: Stopwatch, time_limit_s: float = math.inf, later_steps: int = 0
) -> tuple[float, ...]:
    """Seconds of each step without warm-up, synchronised one by one.

    Raises TooSlowError if these steps and `later_steps` further steps would exceed `time_limit_s`.
    """
    first_s = time_latencies(step, 1, watch)
    with without_garbage_collection():
        second_s = time_latencies(step, 1, watch)
        if slow := too_slow(first_s[0] + second_s[0], second_s[0], steps - 2 + later_steps, time_limit_s):
            raise slow
        return (*first_s, *second_s, *time_latencies(step, steps - 2, watch))


def time_unsynchronised(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds of each of `steps` steps by the host's clock, synchronised only before the first and after the last.

    Once a deep network has filled a GPU's queue (about a thousand launches), these times jump to the device's time.
    """
    latencies_s = []
    with watch.around():
        watch.synchronise()
        for _ in range(steps):
            start_ns = watch.wall_ns()
            step()
            latencies_s.append((watch.wall_ns() - start_ns) * NANO)
        watch.synchronise()
    collect_if_due()
    return latencies_s

"""Latency of single steps: measured rightly, and with the mistakes that are common, in turns.

The mistakes are those of A. Geifman (Deci), "The correct way to measure inference time of deep neural networks": no
warm-up, a host clock that does not wait for the device, transfers within the measured step. (The fourth, a single
sample, needs no steps: any one of the right latencies is that.)

The ways take turns of a few steps, in an order drawn by lot and then run backwards. A machine's pace changes within a
trial, for seconds or for good, and ways that ran one after the other would show that as a mistake. A turn begins
synchronised and with a step that does not count, so that nothing of one way shows in another: marks perturb the wall
clock, and a queue that is full delays whoever comes next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from crossover.measurement.clock.time_limit import too_slow
from crossover.measurement.clock.timing import NANO, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.clock.timing_columns import latency_columns
from crossover.measurement.step.tasks import InferenceTask, Task

Step = Callable[[], None]
Way = Callable[[int], list[float]]
"""Seconds of each of so many steps, measured in one way; the device is idle before the first and after the last."""

TURN_STEPS = 50
"""So many that a deep network has filled a GPU's queue long before the last: most show what a full queue does."""


def measure_latencies(ways: Mapping[str, Way], steps: int, seed: int) -> dict[str, Any]:
    """Columns of `steps` steps measured in each way, in turns whose order the seed sets; none for 0 steps."""
    if not steps:
        return {}
    order, lot = list(ways), Random(seed)
    found: dict[str, list[float]] = {way: [] for way in ways}
    with without_garbage_collection():
        for turn, done in enumerate(range(0, steps, TURN_STEPS)):
            if turn % 2:
                order.reverse()  # a steady drift then adds as much to each way
            else:
                lot.shuffle(order)
            for way in order:
                ways[way](1)
                found[way] += ways[way](min(TURN_STEPS, steps - done))
    return found | latency_columns(found["latencies_s"])


def right_ways(step: Step, watch: Stopwatch) -> dict[str, Way]:
    """By column, the host's clock around synchronised steps and, where the device has marks, the time between two."""
    ways: dict[str, Way] = {"latencies_s": lambda steps: time_latencies(step, steps, watch)}
    if watch.between_s:
        ways["latencies_device_s"] = lambda steps: time_device_latencies(step, steps, watch)
    return ways


def mistaken_ways(task: Task, execution: str, step: Step, watch: Stopwatch) -> dict[str, Way]:
    """By column, the mistakes that a warm trial on an accelerator can make; on a CPU they are the right way again."""
    ways: dict[str, Way] = {"latencies_unsynchronised_s": lambda steps: time_unsynchronised(step, steps, watch)}
    if transferring := transfer_step(task, execution):
        ways["latencies_transfer_s"] = lambda steps: time_latencies(transferring, steps, watch)
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
    step: Step, steps: int, watch: Stopwatch, time_limit_s: float = math.inf, later_steps: int = 0
) -> tuple[float, ...]:
    """Seconds of each of the very first `steps` steps of the process, individually synchronised: no warm-up.

    Raises TooSlowError where the second step shows that these and `later_steps` would outlast `time_limit_s`.
    """
    if not steps:
        return ()
    first_s = time_latencies(step, 1, watch)
    if steps == 1:
        return tuple(first_s)
    with without_garbage_collection():
        second_s = time_latencies(step, 1, watch)
        if slow := too_slow(first_s[0] + second_s[0], second_s[0], steps - 2 + later_steps, time_limit_s):
            raise slow
        return (*first_s, *second_s, *time_latencies(step, steps - 2, watch))


def time_unsynchronised(step: Step, steps: int, watch: Stopwatch) -> list[float]:
    """Seconds that the host's clock shows for each of `steps` steps that nobody waits for.

    The device is waited for before the first and after the last. A GPU's queue holds about a thousand launches: once a
    deep network has filled it, a launch waits for the device to take one, and the latencies leap from the host's time
    to the device's. That is what a reader of such a clock would see, so it stays.
    """
    found_s = []
    watch.synchronise()
    for _ in range(steps):
        start_ns = watch.wall_ns()
        step()
        found_s.append((watch.wall_ns() - start_ns) * NANO)
    watch.synchronise()
    return found_s


def transfer_step(task: Task, execution: str) -> Step | None:
    """The step with transfers; None for a training, a workload that offers no batch in host memory, and a CUDA graph.

    A graph's result lies in the graph's own memory, where nobody who replays it would think of taking it from.
    """
    if not isinstance(task, InferenceTask) or execution == "cuda-graph":
        return None
    try:
        task.next_host_inputs()
    except NotImplementedError:
        return None
    return task.step_with_transfers

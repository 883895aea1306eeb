"""Latency of single steps: measured rightly, and with the mistakes that are common, each in a pass of its own.

The mistakes are those of A. Geifman (Deci), "The correct way to measure inference time of deep neural networks": no
warm-up, a host clock that does not wait for the device, transfers within the measured step. (The fourth, a single
sample, needs no pass: any one of the right latencies is that.) Each has a pass of its own, since what one does would
show in another: marks perturb the wall clock, and a queue that is full delays whoever comes next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crossover.measurement.tasks import InferenceTask, Task
from crossover.measurement.time_limit import too_slow
from crossover.measurement.timing import NANO, Stopwatch, time_block, without_garbage_collection
from crossover.measurement.timing_columns import latency_columns

Step = Callable[[], None]


def measure_latencies(step: Step, steps: int, watch: Stopwatch) -> dict[str, Any]:
    """Columns of the right ways: the host's clock around synchronised steps, and the device's marks; none for 0 steps.

    The device's are None where it has no marks.
    """
    if not steps:
        return {}
    latencies_s = time_latencies(step, steps, watch)
    device_s = time_device_latencies(step, steps, watch)
    return {**latency_columns(latencies_s), "latencies_device_s": None if device_s is None else list(device_s)}


def measure_mistakes(task: Task, execution: str, step: Step, steps: int, watch: Stopwatch) -> dict[str, Any]:
    """Columns of the mistakes that a warm trial can make; transfers are None where they are not offered."""
    transferring = transfer_step(task, execution)
    return {
        "latencies_unsynchronised_s": list(time_unsynchronised(step, steps, watch)),
        "latencies_transfer_s": None if transferring is None else list(time_latencies(transferring, steps, watch)),
    }


def time_latencies(step: Step, steps: int, watch: Stopwatch) -> tuple[float, ...]:
    """Seconds of each of `steps` individually synchronised steps: what one request waits for."""
    with without_garbage_collection():
        plain = _without_marks(watch)
        return tuple(time_block(step, 1, plain).wall_s for _ in range(steps))


def time_device_latencies(step: Step, steps: int, watch: Stopwatch) -> tuple[float, ...] | None:
    """Seconds between two marks in the device's queue around each of `steps` synchronised steps; None without marks."""
    if watch.between_s is None:
        return None
    with without_garbage_collection():
        spans_s = [time_block(step, 1, watch).device_s for _ in range(steps)]
    return tuple(span_s for span_s in spans_s if span_s is not None)


def time_cold(
    step: Step, steps: int, watch: Stopwatch, time_limit_s: float = math.inf, later_steps: int = 0
) -> tuple[float, ...]:
    """Seconds of each of the very first `steps` steps of the process, individually synchronised: no warm-up.

    Raises TooSlowError where the second step shows that these and `later_steps` would outlast `time_limit_s`.
    """
    if not steps:
        return ()
    plain = _without_marks(watch)
    first_s = time_block(step, 1, plain).wall_s
    if steps == 1:
        return (first_s,)
    with without_garbage_collection():
        second_s = time_block(step, 1, plain).wall_s
        if slow := too_slow(first_s + second_s, second_s, steps - 2 + later_steps, time_limit_s):
            raise slow
        return (first_s, second_s, *(time_block(step, 1, plain).wall_s for _ in range(steps - 2)))


def time_unsynchronised(step: Step, steps: int, watch: Stopwatch) -> tuple[float, ...]:
    """Seconds that the host's clock shows for each of `steps` steps that nobody waits for.

    The device is waited for before the first and after the last. A GPU's queue holds about a thousand launches: once a
    deep network has filled it, a launch waits for the device to take one, and the latencies leap from the host's time
    to the device's. That is what a reader of such a clock would see, so it stays.
    """
    found_s = []
    with without_garbage_collection():
        watch.synchronise()
        for _ in range(steps):
            start_ns = watch.wall_ns()
            step()
            found_s.append((watch.wall_ns() - start_ns) * NANO)
        watch.synchronise()
    return tuple(found_s)


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


def _without_marks(watch: Stopwatch) -> Stopwatch:
    """The host's clock alone: a mark would be part of each latency."""
    return replace(watch, mark=None, between_s=None)

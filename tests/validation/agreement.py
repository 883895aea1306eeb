"""Time a step with three interleaved methods: as in a trial, with a hand-written loop, and with torch's benchmark
timer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch.utils.benchmark import Timer

from crossover.config.studies import Effort
from crossover.measurement.clock.timing import Step, Stopwatch, time_block, time_steps

EFFORT = Effort(warmup_min_steps=1, warmup_min_s=0.02, warmup_max_s=0.02, timed_min_s=0.1, timed_max_s=0.1)
"""A short effort, so that a machine whose speed drifts over seconds changes little within a round."""

STEP_S = 100e-6
"""Seconds of the step with which the harness's cost is compared."""


def three_methods(
    step: Step, cycle_steps: int, watch: Stopwatch, threads: int, rounds: int
) -> Iterator[dict[str, float]]:
    """Yield, for each round, the seconds of a step by each method; the order rotates from round to round."""
    steps = time_steps(step, cycle_steps, EFFORT, watch)[0]["timed_steps"]
    timer = Timer("step()", globals={"step": step}, num_threads=threads)
    methods: list[tuple[str, Callable[[], float]]] = [
        ("trial_s", lambda: float(time_steps(step, cycle_steps, EFFORT, watch)[0]["step_time_s"])),
        ("by_hand_s", lambda: by_hand_s(step, steps, watch.synchronise)),
        ("timer_s", lambda: float(timer.timeit(steps).median)),
    ]
    for turn in range(rounds):
        order = methods[turn % 3 :] + methods[: turn % 3]
        yield {name: method() for name, method in order}
        torch.set_num_threads(threads)  # the timer restores the number set before


def by_hand_s(step: Step, steps: int, synchronise: Step) -> float:
    """Seconds of a step: warm up a little, synchronise, run, synchronise, divide."""
    for _ in range(max(3, steps // 10)):
        step()
    synchronise()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    synchronise()
    return (time.perf_counter() - start) / steps


def harness_cost_s(watch: Stopwatch) -> float:
    """Seconds that the harness adds to a step, from blocks of empty steps with as many steps as a block of 100 us
    steps.
    """
    steps = round(EFFORT.block_min_s / STEP_S)
    return statistics.median(time_block(lambda: None, steps, watch).wall_s for _ in range(500)) / steps

"""Wall time of synchronised blocks: what a user waits for, measured the same way on every device."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crossover.studies import Effort

NANO = 1e-9


@dataclass(frozen=True)
class Stopwatch:
    """The clocks of a trial, injected so that tests need no real time."""

    wall_ns: Callable[[], int]
    cpu_ns: Callable[[], int]
    synchronise: Callable[[], None]


@dataclass(frozen=True)
class Timing:
    """What was timed. Times in seconds."""

    first_step_s: float
    warmup_s: float
    warmup_steps: int
    block_steps: int
    samples_s: tuple[float, ...]
    timed_cpu_s: float

    @property
    def timed_steps(self) -> int:
        """Steps in all timed blocks."""
        return self.block_steps * len(self.samples_s)

    @property
    def timed_s(self) -> float:
        """Sum of all timed blocks."""
        return self.block_steps * math.fsum(self.samples_s)


def time_steps(step: Callable[[], None], cycle_steps: int, effort: Effort, watch: Stopwatch) -> Timing:
    """Time the first step apart, warm up, choose the block, and time blocks until there are enough.

    A block is the smallest whole number of cycles that lasts `effort.block_min_s`; it is synchronised once before and
    once after. Blocks are timed until there are `blocks_min` of them and they sum to `timed_min_s`, or, with at least
    two blocks, until they sum to `timed_max_s`. No sample is dropped.
    """

    def block_of(cycles: int) -> float:
        return _time_block(step, cycles * cycle_steps, watch)

    first_step_s = _time_block(step, 1, watch)
    with _without_garbage_collection():
        warmup_s, warmup_steps = _time_block(step, cycle_steps - 1, watch), cycle_steps
        cycle_s = math.inf
        while cycle_s == math.inf or not _warm(warmup_s, warmup_steps, effort):
            one_s = block_of(1)
            warmup_s, warmup_steps = warmup_s + one_s, warmup_steps + cycle_steps
            cycle_s = min(cycle_s, one_s)  # one slow cycle must not make the blocks short

        block_s, cycles = cycle_s, 1
        while block_s < effort.block_min_s:
            cycles = max(cycles + 1, math.ceil(cycles * effort.block_min_s / max(block_s, NANO)))
            block_s = block_of(cycles)
            warmup_s, warmup_steps = warmup_s + block_s, warmup_steps + cycles * cycle_steps

        blocks: list[float] = []
        cpu_start_ns = watch.cpu_ns()
        while not _enough(blocks, effort):
            blocks.append(block_of(cycles))
        timed_cpu_s = (watch.cpu_ns() - cpu_start_ns) * NANO
    block_steps = cycles * cycle_steps
    samples_s = tuple(block / block_steps for block in blocks)
    return Timing(first_step_s, warmup_s, warmup_steps, block_steps, samples_s, timed_cpu_s)


def _warm(warmup_s: float, steps: int, effort: Effort) -> bool:
    if warmup_s >= effort.warmup_max_s:
        return True
    return steps >= effort.warmup_min_steps and warmup_s >= effort.warmup_min_s


def _enough(blocks: list[float], effort: Effort) -> bool:
    timed_s = math.fsum(blocks)
    if len(blocks) >= effort.blocks_min and timed_s >= effort.timed_min_s:
        return True
    return len(blocks) >= 2 and timed_s >= effort.timed_max_s


def _time_block(step: Callable[[], None], steps: int, watch: Stopwatch) -> float:
    """Seconds of `steps` steps between two synchronisations."""
    watch.synchronise()
    start_ns = watch.wall_ns()
    for _ in range(steps):
        step()
    watch.synchronise()
    return (watch.wall_ns() - start_ns) * NANO


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass(frozen=True)
class Summary:
    """The samples of one trial in a few numbers. Times in seconds."""

    median_s: float
    mean_s: float
    iqr_s: float
    severe_outliers: int


def summarise_samples(samples_s: tuple[float, ...]) -> Summary:
    """Median, mean, interquartile range, and the number of samples beyond Q3 + 3 IQR (Tukey's outer fence)."""
    q1, median, q3 = statistics.quantiles(samples_s, n=4, method="inclusive")
    severe = sum(sample > q3 + 3 * (q3 - q1) for sample in samples_s)
    return Summary(median, statistics.fmean(samples_s), q3 - q1, severe)


def find_flags(timing: Timing, effort: Effort) -> list[str]:
    """Why the timing deserves less trust; names as in `records.FLAGS`."""
    samples, summary = timing.samples_s, summarise_samples(timing.samples_s)
    third = max(1, len(samples) // 3)
    first, last = statistics.median(samples[:third]), statistics.median(samples[-third:])
    checks = {
        "drift": abs(last / first - 1) > 0.05,
        "noisy": summary.iqr_s / summary.median_s > 0.25,
        "skewed": summary.mean_s / summary.median_s > 1.25,
        "few_blocks": len(samples) < effort.blocks_min,
        "warmup_capped": timing.warmup_steps < effort.warmup_min_steps,
    }
    return [flag for flag, raised in checks.items() if raised]

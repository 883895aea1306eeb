"""Wall time of blocks of steps, each between two synchronisations, measured the same way on every device."""

from __future__ import annotations

import gc
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import psutil

from crossover.config.studies import Effort
from crossover.drift import drift_of
from crossover.errors import TooSlowError
from crossover.measurement.clock.stopping import Course, timed_enough, warmed_up
from crossover.measurement.clock.unlike import UNEVEN_SHARE, cycle_of, differ_by_themselves, unevenness

NANO = 1e-9

STEPS_AFTER_TIMING = 5
"""Approximate number of steps in the numerical check, the memory pass and the count of operations."""

PROBES = 2
"""Number of consecutive slow steps that end a trial; a single one may be a stall of the machine."""

DRIFT_SHARE = 0.25
"""Relative change of the median above which a drift is flagged; smaller drifts do not predict how well trials agree."""

BLOCK_TRIES = 2
"""Tries of a block length. The fastest is used, because a stall must not shorten the blocks."""

COLLECT_AFTER = 100
"""Garbage is collected between two blocks if there are more new objects than this. Training leaves about one such
object per step. Collecting 100 new objects takes 4 us; collecting all objects of a process with torch takes 0.1 s."""

Step = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Stopwatch:
    """The clocks of a measurement; `mark` and `between_s` come from `OpenDevice`."""

    wall_ns: Callable[[], int] = time.perf_counter_ns
    cpu_ns: Callable[[], int] = time.process_time_ns
    queued_ns: Callable[[], int] = lambda: 0
    """Time for which threads of the process have waited for a core, summed over the threads."""
    synchronise: Callable[[], None]
    mark: Callable[[], Any] | None = None
    between_s: Callable[[Any, Any], float] | None = None
    counts: Callable[[], Mapping[str, int]] = dict
    """Reads monotonic counters, by column name; called before the first and after the last timed block."""
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    """Makes the context of a block; entering and leaving it is not timed."""
    before: Callable[[Step, int], object] | None = None
    """Called with the step and the number of steps right before a block, once the device is idle."""
    slowest: Callable[[float], float] = float
    """Maps the block's seconds to those of the slowest process that runs it."""


@dataclass(frozen=True)
class Block:
    """Wall time and the process's CPU time of a block in seconds, and device time if the device has timestamps."""

    wall_s: float
    cpu_s: float
    device_s: float | None


def time_steps(
    step: Step,
    cycle_steps: int,
    effort: Effort,
    watch: Stopwatch,
    time_limit_s: float = math.inf,
    ran_s: Sequence[float] = (),
    later_steps: int = 0,
    waits: bool = False,
    calls: int | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Time the first step, warm up until steady, choose the block length, and time blocks until precise.

    Returns columns of `Measurement` and a list of flags from `config.statuses.FLAGS`. A block is a number of whole
    cycles of `cycle_steps` steps, or of a multiple that the warm-up shows. No sample is dropped. `waits` is True if
    steps wait for others, such as a loader's workers. `ran_s` has the seconds of the steps that have run already; all
    but the first count as warm-up. With `calls`, that many single steps are timed, however they differ. Raises
    TooSlowError if even the shortest trial, with `later_steps` after the timing, would exceed `time_limit_s` at the
    speed of the next steps.
    """

    def run(steps: int) -> Block:
        return time_block(step, steps, watch)

    ran_s = ran_s or (run(1).wall_s,)
    with without_garbage_collection():
        first_step_s, *others_s = _probe(run, cycle_steps, ran_s, time_limit_s, later_steps)
        course = Course(steps=1 + len(others_s), seconds=math.fsum(others_s))
        if rest_steps := -course.steps % cycle_steps:
            course.steps += rest_steps
            course.seconds += run(rest_steps).wall_s
        steady = _warm_up(run, cycle_steps, effort, course, watch.wall_ns)
        block_steps = 1 if calls else _choose_block(run, cycle_steps, effort, course)
        timed = Course()
        cpu_s, device_s = [], []
        counts, queued_start_ns, cpu_start_ns = watch.counts(), watch.queued_ns(), watch.cpu_ns()
        while not (len(timed.samples_s) >= calls if calls else timed_enough(timed, effort)):
            block = run(block_steps)
            timed.add(block.wall_s, block_steps)
            cpu_s.append(block.cpu_s)  # not the block, since objects would make a collection of garbage due
            device_s.append(block.device_s)
        timed_cpu_s = (watch.cpu_ns() - cpu_start_ns) * NANO
        queued_s = (watch.queued_ns() - queued_start_ns) * NANO / block_steps
        counts_after = watch.counts()
    device_samples_s = [block_s / block_steps for block_s in device_s if block_s is not None]
    unlike = differ_by_themselves(timed.samples_s, cpu_s, waits, queued_s)
    average = statistics.fmean if unlike else statistics.median
    columns = {
        **sample_columns(timed.samples_s, average),
        "block_steps": block_steps,
        "timed_s": block_steps * math.fsum(timed.samples_s),
        "timed_steps": timed.steps,
        "timed_cpu_s": timed_cpu_s,
        "first_step_s": first_step_s,
        "warmup_s": course.seconds,
        "warmup_steps": course.steps,
        "device_time_s": average(device_samples_s) if device_samples_s else None,
        "device_samples_s": device_samples_s or None,
        **{name: counts_after[name] - count for name, count in counts.items()},
    }
    flags = {
        "drift": has_drifted(timed.samples_s),
        "warmup_capped": not steady,
        "unlike_blocks": unevenness(timed.samples_s) > UNEVEN_SHARE,
    }
    return columns, [flag for flag, is_set in flags.items() if is_set]


def _probe(
    run: Callable[[int], Block], cycle_steps: int, ran_s: Sequence[float], time_limit_s: float, later_steps: int
) -> list[float]:
    """Run one more step, or up to PROBES while they are too slow; returns the seconds of all steps so far."""
    probed_s = list(ran_s)
    while True:
        probed_s.append(run(1).wall_s)
        rest_steps = -len(probed_s) % cycle_steps
        # At least one cycle of warm-up and one for each of two blocks.
        least_steps = rest_steps + 3 * cycle_steps + STEPS_AFTER_TIMING + later_steps
        spent_s = math.fsum(probed_s)
        slow = too_slow(spent_s, probed_s[-1], least_steps, time_limit_s)
        if slow is None:
            return probed_s
        if spent_s > time_limit_s or len(probed_s) == len(ran_s) + PROBES:
            raise slow


def too_slow(spent_s: float, step_s: float, steps: int, time_limit_s: float) -> TooSlowError | None:
    """The TooSlowError to raise if `steps` further steps after `spent_s` would exceed the limit; None otherwise."""
    projected_s = spent_s + step_s * steps
    if projected_s <= time_limit_s:
        return None
    return TooSlowError(
        f"a step takes {step_s:.3g} s, so the trial would take at least {projected_s:.3g} s, "
        f"more than the limit of {time_limit_s:g} s; raise time_limit_s, or leave the cell out"
    )


def _warm_up(
    run: Callable[[int], Block], cycle_steps: int, effort: Effort, course: Course, wall_ns: Callable[[], int]
) -> bool:
    """Run cycles until their times are steady; False if the cap is reached first.

    The time between steps counts too: around a step of a microsecond, the readings of the clocks take ten.
    """
    start_ns, before_s = wall_ns(), course.seconds
    while True:
        course.add(run(cycle_steps).wall_s, cycle_steps)
        course.seconds = before_s + (wall_ns() - start_ns) * NANO
        if warmed_up(course, effort, cycle_steps):
            return True
        if course.seconds >= effort.warmup_max_s:
            return False


def _choose_block(run: Callable[[int], Block], cycle_steps: int, effort: Effort, course: Course) -> int:
    """Find the number of steps in a long enough block by trying, since steps are usually faster in a block."""
    repeated = cycle_of(course.samples_s)
    starts = range(0, len(course.samples_s) - repeated + 1, repeated)
    shortest_s = min(math.fsum(course.samples_s[start : start + repeated]) for start in starts)
    block_s = shortest_s * cycle_steps  # a slow cycle must not shorten the blocks
    cycle_steps *= repeated
    cycles = 1
    while block_s < effort.block_min_s:
        cycles = max(cycles + 1, math.ceil(cycles * effort.block_min_s / max(block_s, NANO)))
        tries_s = [run(cycles * cycle_steps).wall_s for _ in range(BLOCK_TRIES)]
        for tried_s in tries_s:
            course.add(tried_s, cycles * cycle_steps)
        block_s = min(tries_s)
    return cycles * cycle_steps


def time_block(step: Step, steps: int, watch: Stopwatch) -> Block:
    """Time `steps` steps between two synchronisations, then collect garbage if due.

    Between the readings of the clock, the host does what a plain loop does: the same calls, and one wait at the end.
    """
    with watch.around():
        watch.synchronise()
        if watch.before is not None:
            watch.before(step, steps)
        begin = watch.mark() if watch.mark else None
        cpu_start_ns = watch.cpu_ns()
        start_ns = watch.wall_ns()
        for _ in repeat(None, steps):
            step()
        end = watch.mark() if watch.mark else None
        watch.synchronise()
        wall_s = (watch.wall_ns() - start_ns) * NANO
        cpu_s = (watch.cpu_ns() - cpu_start_ns) * NANO
    collect_if_due()
    return Block(watch.slowest(wall_s), cpu_s, watch.between_s(begin, end) if watch.between_s else None)


def collect_if_due() -> None:
    """Collect reference cycles of past steps, whose tensors would otherwise fill the memory."""
    young, *older = gc.get_count()
    if young > COLLECT_AFTER:
        due = [count > threshold for count, threshold in zip(older, gc.get_threshold()[1:], strict=True)]
        gc.collect(2 if due[1] else 1 if due[0] else 0)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collect once, then disable the automatic collector, whose pauses would be timed."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def sample_columns(samples_s: list[float], average: Callable[[list[float]], float]) -> dict[str, Any]:
    """Columns for the samples and their summary; severe outliers exceed Q3 + 3 IQR, Tukey's outer fence."""
    q1, _, q3 = statistics.quantiles(samples_s, n=4, method="inclusive")
    return {
        "step_time_s": average(samples_s),
        "step_time_mean_s": statistics.fmean(samples_s),
        "step_time_iqr_s": q3 - q1,
        "severe_outliers": sum(sample > q3 + 3 * (q3 - q1) for sample in samples_s),
        "samples_s": samples_s,
    }


def has_drifted(samples_s: list[float]) -> bool:
    return abs(drift_of(samples_s) - 1) > DRIFT_SHARE


def process_age_s() -> float:
    stat = Path("/proc/self/stat")
    if stat.is_file():  # psutil adds the boot time, which may be off by a second
        started_s = int(stat.read_text(encoding="ascii").rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s
    return time.time() - psutil.Process().create_time()


class Phases:
    """Durations of a process's phases in seconds. The first is the imports, which took the process's age, `age_s`."""

    def __init__(self, age_s: float, clock_s: Callable[[], float] = time.perf_counter) -> None:
        self.clock_s = clock_s
        self.spent_s = {"import": age_s}
        self._last_s = clock_s()

    def end(self, name: str) -> None:
        now_s = self.clock_s()
        self.spent_s[name] = now_s - self._last_s
        self._last_s = now_s

    def to_json(self) -> str:
        return json.dumps({name: round(seconds, 4) for name, seconds in self.spent_s.items()})

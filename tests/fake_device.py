"""A fake clock and device, on which timings are exact and tests take no time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossover.config.studies import Effort
from crossover.measurement.clock.timing import Stopwatch, time_steps

MICROSECOND, MILLISECOND, SECOND = 10**3, 10**6, 10**9

EFFORT = Effort(
    warmup_min_steps=50,
    warmup_min_s=0.0995,
    warmup_long_s=2.9995,
    warmup_max_s=2.9995,
    block_min_s=0.0195,
    blocks_min=30,
    timed_min_s=0.9995,
    timed_max_s=9.9995,
    timed_tolerance=0.01,
)
"""Limits that no sum of whole milliseconds meets exactly, where a rounding error would decide."""


class FakeDevice:
    """A device that runs what the host queues: a step takes host time at once and device time later.

    Times are in nanoseconds; the host's may depend on the step's number, from 0, and on the clock. `pauses_ns` delays
    the host after a step. Marks are in the queue, like CUDA events.
    """

    def __init__(
        self,
        host_ns: int | Callable[[int, int], float],
        device_ns: int = 0,
        wait_ns: int = 0,
        pauses_ns: dict[int, int] | None = None,
    ) -> None:
        self.now = 0
        self.busy_until = 0
        self.host_ns = host_ns
        self.device_ns, self.wait_ns = device_ns, wait_ns
        self.pauses_ns = pauses_ns or {}
        self.steps = 0
        self.synchronisations = 0
        self.counted_at: list[int] = []

    def step(self) -> None:
        self.now += self.host_ns if isinstance(self.host_ns, int) else round(self.host_ns(self.steps, self.now))
        self.busy_until = max(self.busy_until, self.now) + self.device_ns
        self.now += self.pauses_ns.get(self.steps, 0)
        self.steps += 1

    def synchronise(self) -> None:
        self.now = max(self.now, self.busy_until) + self.wait_ns
        self.synchronisations += 1

    def mark(self) -> int:
        return max(self.now, self.busy_until)

    def counts(self) -> dict[str, int]:
        self.counted_at.append(self.steps)
        return {"recompiles": 7, "involuntary_switches": 3 * self.steps}

    def watch(self, marks: bool = False) -> Stopwatch:
        return Stopwatch(
            wall_ns=lambda: self.now,
            cpu_ns=lambda: 2 * self.now,  # the process keeps two cores busy
            synchronise=self.synchronise,
            mark=self.mark if marks else None,
            between_s=(lambda begin, end: (end - begin) / SECOND) if marks else None,
            counts=self.counts,
        )

    def time(self, effort: Effort = EFFORT, cycle_steps: int = 1, marks: bool = False, **others: Any) -> dict[str, Any]:
        columns, flags = time_steps(self.step, cycle_steps, effort, self.watch(marks), **others)
        return {**columns, "flag_names": flags}

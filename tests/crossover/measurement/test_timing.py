"""Timing on a fake clock: every number here is worked out by hand."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from crossover.measurement.timing import (
    Stopwatch,
    Timing,
    find_flags,
    summarise_samples,
    time_steps,
)
from crossover.studies import Effort

MILLISECOND = 1_000_000
EFFORT = Effort(
    warmup_min_steps=50,
    warmup_min_s=0.1,
    warmup_max_s=3.0,
    block_min_s=0.02,
    blocks_min=30,
    timed_min_s=1.0,
    timed_max_s=10.0,
)


class FakeDevice:
    """A clock, and a device that works off what the host queues: a step costs host time now and device time later."""

    def __init__(self, host_ns: int, device_ns: int = 0, first_ns: int = 0) -> None:
        self.now = 0
        self.busy_until = 0
        self.host_ns, self.device_ns, self.first_ns = host_ns, device_ns, first_ns
        self.steps = 0
        self.synchronisations = 0

    def step(self) -> None:
        self.now += self.host_ns + (self.first_ns if self.steps == 0 else 0)
        self.busy_until = max(self.busy_until, self.now) + self.device_ns
        self.steps += 1

    def synchronise(self) -> None:
        self.now = max(self.now, self.busy_until)
        self.synchronisations += 1

    def watch(self) -> Stopwatch:
        return Stopwatch(lambda: self.now, lambda: 2 * self.now, self.synchronise)

    def time(self, effort: Effort = EFFORT, cycle_steps: int = 1) -> Timing:
        return time_steps(self.step, cycle_steps, effort, self.watch())


def test_a_steady_step_is_timed_exactly() -> None:
    device = FakeDevice(MILLISECOND)
    timing = device.time()
    assert timing.block_steps == 20
    assert timing.samples_s == pytest.approx([1e-3] * 50)  # 1 s in blocks of 20 ms
    assert timing.timed_s == pytest.approx(1.0)
    assert timing.timed_steps == 1000
    assert timing.warmup_steps == 1 + 100 + 20  # the first step, 0.1 s, and the block that was tried
    assert timing.warmup_s == pytest.approx(0.12)
    assert device.steps == 1121
    assert timing.timed_cpu_s == pytest.approx(2.0)  # this fake keeps two cores busy


def test_a_block_waits_for_the_device() -> None:
    """Queuing a step takes 10 us, working it off 1 ms: the wall time of a step is the device's."""
    timing = FakeDevice(host_ns=10_000, device_ns=MILLISECOND).time()
    # The first step of a block is queued before the device can start: 10 us a block, not a step.
    assert timing.samples_s == pytest.approx([1e-3 + 1e-5 / timing.block_steps] * len(timing.samples_s))


def test_a_block_is_synchronised_once_before_and_once_after() -> None:
    device = FakeDevice(MILLISECOND)
    # The first step, the rest of its cycle (nothing here), the warm-up, the tried block, and the timed blocks.
    blocks = 1 + 1 + 100 + 1 + len(device.time().samples_s)
    assert device.synchronisations == 2 * blocks


def test_a_host_bound_step_shows_the_host() -> None:
    timing = FakeDevice(host_ns=MILLISECOND, device_ns=10_000).time()
    assert timing.samples_s[0] == pytest.approx(1e-3, rel=1e-3)


def test_the_first_step_is_kept_apart() -> None:
    timing = FakeDevice(MILLISECOND, first_ns=500 * MILLISECOND).time()
    assert timing.first_step_s == pytest.approx(0.501)
    assert max(timing.samples_s) == pytest.approx(1e-3)
    assert timing.warmup_s == pytest.approx(0.12)
    assert timing.warmup_steps == 1 + 100 + 20


def test_a_slow_first_step_in_a_long_cycle_makes_no_short_blocks() -> None:
    timing = FakeDevice(MILLISECOND // 10, first_ns=1500 * MILLISECOND).time(cycle_steps=100)
    assert timing.block_steps == 200  # 20 ms
    assert timing.warmup_s >= 0.1


def test_blocks_hold_whole_cycles() -> None:
    timing = FakeDevice(7 * MILLISECOND).time(cycle_steps=10)
    assert timing.block_steps == 10
    timing = FakeDevice(MILLISECOND).time(cycle_steps=15)
    assert timing.block_steps == 30
    assert timing.warmup_steps % 15 == 0


def test_a_block_is_the_smallest_that_lasts_long_enough() -> None:
    """An asynchronous step looks slower alone than in a block: the block is tried and grown."""
    timing = FakeDevice(host_ns=900_000, device_ns=100_000).time()
    block_s = timing.block_steps * timing.samples_s[0]
    assert 0.02 <= block_s < 0.02 + 2 * timing.samples_s[0]


def test_one_slow_cycle_does_not_make_the_blocks_short() -> None:
    device = FakeDevice(MILLISECOND)

    def step() -> None:
        device.step()
        if device.steps == 101:  # the last step of the warm-up
            device.now += 50 * MILLISECOND

    timing = time_steps(step, 1, EFFORT, device.watch())
    assert timing.block_steps == 20


def test_timing_ends_at_the_cap_with_too_few_blocks_flagged() -> None:
    timing = FakeDevice(1000 * MILLISECOND).time(replace(EFFORT, warmup_min_steps=2))
    assert timing.timed_s == pytest.approx(10.0)
    assert "few_blocks" in find_flags(timing, EFFORT)


def test_at_least_two_blocks_are_timed() -> None:
    timing = FakeDevice(20_000 * MILLISECOND).time(replace(EFFORT, warmup_min_steps=1))
    assert len(timing.samples_s) == 2


def test_the_warm_up_is_capped_and_flagged() -> None:
    timing = FakeDevice(1000 * MILLISECOND).time()
    assert timing.warmup_steps == 1 + 3
    assert "warmup_capped" in find_flags(timing, EFFORT)


def test_the_garbage_collector_rests_while_timing() -> None:
    states = []
    device = FakeDevice(MILLISECOND)

    def step() -> None:
        states.append(gc.isenabled())
        device.step()

    time_steps(step, 1, EFFORT, device.watch())
    assert states[0]
    assert not any(states[1:])
    assert gc.isenabled()


def test_the_summary_by_hand() -> None:
    summary = summarise_samples((1.0, 2.0, 3.0, 4.0, 100.0))
    assert summary.median_s == 3
    assert summary.mean_s == 22
    assert summary.iqr_s == 2  # quartiles 2 and 4
    assert summary.severe_outliers == 1  # 100 > 4 + 3 * 2


def made_up(samples: list[float]) -> Timing:
    return Timing(1.0, 1.0, 100, 1, tuple(samples), 0.0)


@pytest.mark.parametrize(
    ("samples", "flags"),
    [
        ([1.0] * 30, []),
        ([1.0] * 20 + [1.06] * 10, ["drift"]),
        ([1.0] * 20 + [1.04] * 10, []),
        ([1.0, 1.6] * 15, ["noisy"]),
        ([1.0] * 15 + [9.0] + [1.0] * 14, ["skewed"]),
        ([1.0] * 29, ["few_blocks"]),
    ],
)
def test_flags(samples: list[float], flags: list[str]) -> None:
    assert find_flags(made_up(samples), EFFORT) == flags

"""Timing on a fake clock; the numbers are worked out by hand."""

from __future__ import annotations

import gc
import json
import random
import statistics
from dataclasses import replace
from typing import Any

import pytest

from crossover.config.statuses import FLAGS
from crossover.errors import TooSlowError
from crossover.measurement.clock.stopping import relative_half_width
from crossover.measurement.clock.timing import Phases, has_drifted, sample_columns, time_steps
from crossover.tables.columns import COLUMNS
from fake_device import EFFORT, MICROSECOND, MILLISECOND, SECOND, FakeDevice


def test_a_steady_step_is_timed_exactly() -> None:
    device = FakeDevice(MILLISECOND)
    timing = device.time()
    assert timing["block_steps"] == 20  # 20 ms
    assert timing["samples_s"] == pytest.approx([1e-3] * 50)  # 1 s
    assert (timing["timed_s"], timing["timed_steps"]) == (pytest.approx(1.0), 1000)
    # The first two steps, 100 for 0.1 s, and the block that was tried twice.
    assert timing["warmup_steps"] == 2 + 100 + 2 * 20
    assert timing["warmup_s"] == pytest.approx(0.141)  # the first step does not count
    assert timing["first_step_s"] == pytest.approx(1e-3)
    assert timing["timed_cpu_s"] == pytest.approx(2.0)
    assert timing["device_samples_s"] is timing["device_time_s"] is None
    assert timing["flag_names"] == []
    assert set(timing) <= set(COLUMNS)
    assert device.steps == timing["warmup_steps"] + timing["timed_steps"]
    # Before and after two single steps, 100 of warm-up, two tries, and each timed block.
    assert device.synchronisations == 2 * (2 + 100 + 2 + 50)
    assert (timing["recompiles"], timing["involuntary_switches"]) == (0, 3 * 1000)
    assert device.counted_at == [timing["warmup_steps"], timing["warmup_steps"] + timing["timed_steps"]]


def test_the_time_between_the_steps_of_a_warm_up_counts_too() -> None:
    """A step takes 1 ms with the wait after it; the wait before it takes as long, and is not timed."""
    device = FakeDevice(MICROSECOND, wait_ns=999 * MICROSECOND)
    timing = device.time(replace(EFFORT, block_min_s=1e-3))
    assert timing["block_steps"] == 1
    assert timing["samples_s"][0] == pytest.approx(1e-3)
    assert timing["warmup_steps"] == 2 + 50  # for 0.1 s, of which the first two steps took 1 ms


def test_single_calls_are_timed_however_they_differ() -> None:
    """Every third step takes 10 us instead of 1 us; before each, the clock advances by 1 ms, which is not timed."""
    device = FakeDevice(lambda step, _: MICROSECOND * (10 if step % 3 == 0 else 1))
    evicted: list[int] = []

    def evict(*_: object) -> None:
        evicted.append(device.steps)
        device.now += MILLISECOND

    watch = replace(device.watch(), before=evict)
    columns, _ = time_steps(device.step, 7, EFFORT, watch, calls=50)
    assert (columns["block_steps"], columns["timed_steps"]) == (1, 50)
    assert sorted({round(sample * 1e6) for sample in columns["samples_s"]}) == [1, 10]
    assert evicted[-50:] == [*range(device.steps - 50, device.steps)]


def test_a_block_waits_for_the_device_and_its_device_time_excludes_the_wait() -> None:
    """It takes 10 us to queue a step, 1 ms to run it, and 5 ms to synchronise."""
    timing = FakeDevice(10 * MICROSECOND, device_ns=MILLISECOND, wait_ns=5 * MILLISECOND).time(marks=True)
    steps = timing["block_steps"]
    # The device starts once the first step is queued.
    assert timing["device_samples_s"] == pytest.approx([1e-3 + 1e-5 / steps] * len(timing["samples_s"]))
    assert timing["samples_s"] == pytest.approx([1e-3 + (1e-5 + 5e-3) / steps] * len(timing["samples_s"]))


def test_a_warm_up_that_is_never_steady_is_capped_and_flagged() -> None:
    timing = FakeDevice(lambda _, now: MILLISECOND + now / 100).time()
    assert 3.0 <= timing["warmup_s"] < 5.0  # including the blocks that were tried
    assert "warmup_capped" in timing["flag_names"]


def test_a_noisy_step_is_timed_until_its_interval_is_narrow() -> None:
    """Steps take 25 ms +- 10 %."""
    draw = random.Random(3)
    device = FakeDevice(lambda *_: 25 * MILLISECOND * draw.uniform(0.9, 1.1))
    timing = device.time(replace(EFFORT, warmup_tolerance=1.0))
    samples = timing["samples_s"]
    assert timing["block_steps"] == 1
    assert 40 < len(samples) < 400  # 1 s is 40, 10 s are 400
    narrow = [relative_half_width(samples[:count]) <= 0.01 for count in range(30, len(samples) + 1, 10)]
    assert narrow == [False] * (len(narrow) - 1) + [True]


@pytest.mark.parametrize(("host_ms", "cycle_steps", "block_steps"), [(7, 10, 10), (1, 15, 30), (1, 7, 21)])
def test_a_block_is_made_of_whole_cycles(host_ms: int, cycle_steps: int, block_steps: int) -> None:
    timing = FakeDevice(host_ms * MILLISECOND).time(cycle_steps=cycle_steps)
    assert timing["block_steps"] == block_steps
    assert timing["warmup_steps"] % cycle_steps == 0  # so that the first block begins a cycle


def test_a_block_is_enlarged_until_it_lasts_long_enough() -> None:
    """A step takes 1 ms alone and 0.9 ms in a block."""
    timing = FakeDevice(900 * MICROSECOND, device_ns=100 * MICROSECOND).time()
    assert timing["block_steps"] == 22  # 20 were tried, and lasted 18.1 ms; 20 * 19.5 / 18.1 = 21.5


@pytest.mark.parametrize("slow_step", [2, 101, 105])
def test_a_stall_does_not_shorten_the_blocks(slow_step: int) -> None:
    """The stall is in the warm-up (steps 2 to 101) or in the first try of a block; a synchronisation takes 0.9 ms."""

    def block_steps(**pauses: dict[int, int]) -> int:
        return FakeDevice(100 * MICROSECOND, wait_ns=900 * MICROSECOND, **pauses).time()["block_steps"]

    assert block_steps(pauses_ns={slow_step: SECOND}) == block_steps() > 180  # (19.5 - 0.9) / 0.1 = 186


def test_no_sample_is_dropped() -> None:
    """A pause of 3 s in the fifth block counts in its sample and in the total."""
    device = FakeDevice(MILLISECOND, pauses_ns={142 + 4 * 20 + 7: 3 * SECOND})
    timing = device.time()
    assert [round(sample, 9) for sample in timing["samples_s"]] == [
        *[0.001] * 4,
        0.151,
        *[0.001] * (len(timing["samples_s"]) - 5),
    ]
    assert timing["timed_s"] == pytest.approx(len(timing["samples_s"]) * 0.02 + 3)
    assert timing["severe_outliers"] == 1
    assert device.steps == timing["warmup_steps"] + timing["timed_steps"]


def slow(pauses_s: dict[int, int]) -> FakeDevice:
    return FakeDevice(SECOND, pauses_ns={step: seconds * SECOND for step, seconds in pauses_s.items()})


@pytest.mark.parametrize(
    ("pauses_s", "options", "least_s", "message"),
    [
        # Two steps have run, and a third one is probed; then a cycle of warm-up, two blocks, and 5 steps of later
        # passes.
        ({}, {}, 2 + 8, "a step takes 1 s, .* at least 11 s"),
        ({}, {"cycle_steps": 5}, 5 + 3 * 5 + 5, "at least 25 s"),
        ({}, {"later_steps": 300}, 10 + 300, "at least 311 s"),
        # 5 and 2 s have passed, and one or two probes.
        ({}, {"ran_s": (5.0, 2.0)}, 8 + 8, "at least 17 s"),
        # The first step counts towards the limit, but not towards the time per step.
        ({0: 100}, {}, 101 + 1 + 8, "a step takes 1 s"),
        # A stall does not count as a slow step, although eleven steps of 21 s would take over 200 s.
        ({1: 20}, {}, 31, "a step takes 1 s"),
    ],
)
def test_steps_too_slow_for_the_limit_are_given_up_at_once(
    pauses_s: dict[int, int], options: dict[str, Any], least_s: int, message: str
) -> None:
    timing = slow(pauses_s).time(**options, time_limit_s=least_s)
    assert timing["samples_s"] == [1.0] * len(timing["samples_s"])
    device = slow(pauses_s)
    with pytest.raises(TooSlowError, match=message):
        device.time(**options, time_limit_s=least_s - 0.001)
    assert device.steps <= 3
    assert gc.isenabled()


@pytest.mark.parametrize(("pauses_s", "steps"), [({1: 20, 2: 20}, 3), ({1: 40}, 2)])
def test_two_slow_steps_in_a_row_or_the_time_limit_end_a_trial(pauses_s: dict[int, int], steps: int) -> None:
    device = slow(pauses_s)
    with pytest.raises(TooSlowError, match=r"a step takes (21|41) s"):
        device.time(time_limit_s=35)
    assert device.steps == steps


def test_steps_that_have_run_before_count_as_warm_up_except_the_first() -> None:
    device = FakeDevice(MILLISECOND)
    timing = device.time(ran_s=(0.5, 0.002, 0.002))
    assert timing["first_step_s"] == 0.5
    # 4 ms count as passed, then the probe; 95 samples take 99.5 ms, but steadiness is checked after every fourth.
    assert timing["warmup_steps"] == 3 + 1 + 96 + 2 * 20
    assert timing["warmup_s"] == pytest.approx(0.004 + 0.001 + 0.096 + 0.040)
    assert device.steps == timing["warmup_steps"] - 3 + timing["timed_steps"]


@pytest.mark.parametrize(("sample", "outliers"), [(10.0, 0), (10.1, 1), (100.0, 1), (-90.0, 0)])
def test_the_summary_of_samples_by_hand(sample: float, outliers: int) -> None:
    """Quartiles 2 and 4, or 1 and 3; a severe outlier is slower than 4 + 3 * 2."""
    samples = [1.0, 2.0, 3.0, 4.0, sample]
    assert sample_columns(samples, statistics.median) == {
        "step_time_s": 3 if sample > 0 else 2,
        "step_time_mean_s": pytest.approx((10 + sample) / 5),
        "step_time_iqr_s": 2,
        "severe_outliers": outliers,
        "samples_s": samples,
    }


@pytest.mark.parametrize(
    ("samples", "drifted"),
    [
        ([1.0] * 20 + [1.26] * 10, True),
        ([1.0] * 20 + [0.74] * 10, True),
        ([1.0] * 20 + [1.24] * 10, False),
        ([1.0, 1.6] * 15, False),  # scatter without drift
    ],
)
def test_a_drift_of_samples(samples: list[float], drifted: bool) -> None:
    assert has_drifted(samples) is drifted


def test_a_drift_is_flagged() -> None:
    """Blocks of 20 ms; all but the first 25 take 1.5 times as long."""
    device = FakeDevice(lambda step, _: MILLISECOND * (1.5 if step > 142 + 25 * 20 else 1))
    timing = device.time(replace(EFFORT, timed_tolerance=9))
    assert timing["flag_names"] == ["drift"]
    assert set(timing["flag_names"]) <= set(FLAGS)


def test_a_phase_begins_when_the_previous_one_ends() -> None:
    """The process is 2.5 s old when the first phase ends, at time 100."""
    times_s = iter([100.0, 100.25, 103.0])
    phases = Phases(2.5, lambda: next(times_s))
    phases.end("build")
    phases.end("timing")
    assert json.loads(phases.to_json()) == {"import": 2.5, "build": 0.25, "timing": 2.75}

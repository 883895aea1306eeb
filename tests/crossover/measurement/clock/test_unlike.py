"""Steps that are not alike, on a fake clock; the numbers are worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from crossover.measurement.clock.unlike import cycle_of, differ_by_themselves, unevenness
from fake_device import EFFORT, MILLISECOND, FakeDevice

DEFAULT = replace(EFFORT, block_min_s=0.0095, blocks_min=20, timed_min_s=0.1495, timed_max_s=0.4995)


def in_turn(*costs_ms: float, noise: float = 0.0) -> Callable[[int, int], float]:
    """The cost of each step, from a cycle of costs; with relative noise."""
    draw = random.Random(5)
    return lambda step, _now: MILLISECOND * costs_ms[step % len(costs_ms)] * draw.uniform(1 - noise, 1 + noise)


class OtherWork(FakeDevice):
    """A device whose pauses take no CPU time of the process."""

    spins = False
    """Another of the process's threads works meanwhile, and spins when it waits."""

    def watch(self, marks: bool = False) -> Any:
        def paused_ns() -> int:
            return sum(pause for step, pause in self.pauses_ns.items() if step < self.steps)

        def cpu_ns() -> int:
            return (2 if self.spins else 1) * self.now - paused_ns()

        return replace(super().watch(marks), cpu_ns=cpu_ns, queued_ns=paused_ns if self.spins else lambda: 0)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize(
    ("costs_ms", "mean_ms"),
    [
        ((1, 1, 1, 9), 3.0),  # accumulated gradients
        ((10, 10, 10, 90), 30.0),  # each step is longer than a block
        ((1, 40), 20.5),
        ((0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 2.5), 0.4),  # a loader's burst
        ((2, 3, 4, 5, 6), 4.0),  # shapes
    ],
)
def test_a_cycle_of_unlike_steps_is_given_by_its_mean(
    costs_ms: tuple[float, ...], mean_ms: float, noise: float
) -> None:
    timing = FakeDevice(in_turn(*costs_ms, noise=noise)).time(DEFAULT)
    assert timing["block_steps"] % len(costs_ms) == 0
    assert timing["step_time_s"] == pytest.approx(mean_ms / 1e3, rel=1e-6 if noise == 0 else 0.02)
    assert timing["flag_names"] == []


def test_unlike_steps_without_a_cycle_are_given_by_their_mean_and_flagged() -> None:
    """One step in three takes 100 ms instead of 10 ms, at random: 40 ms in the mean."""
    draw = random.Random(1)
    device = FakeDevice(lambda *_: MILLISECOND * (100 if draw.random() < 1 / 3 else 10))
    timing = device.time(replace(DEFAULT, timed_max_s=20.0, timed_tolerance=0.001))
    assert timing["block_steps"] == 1
    assert timing["step_time_s"] == timing["step_time_mean_s"] == pytest.approx(0.04, rel=0.1)
    assert timing["flag_names"] == ["unlike_blocks"]


@pytest.mark.parametrize("spins", [False, True])
def test_like_steps_among_disturbances_are_given_by_their_median(spins: bool) -> None:
    """Other work takes 30 ms of a core in every tenth step or so; CPU time rises only if another thread spins."""
    draw = random.Random(2)
    pauses_ns = {step: 30 * MILLISECOND for step in range(10_000) if draw.random() < 0.1}
    device = OtherWork(10 * MILLISECOND, pauses_ns=pauses_ns)
    device.spins = spins
    timing = device.time(replace(DEFAULT, timed_min_s=1.4995, timed_max_s=1.4995))
    assert timing["step_time_s"] == pytest.approx(0.01)
    assert timing["step_time_mean_s"] > 0.0115
    assert timing["flag_names"] == ["unlike_blocks"]


class Queued(FakeDevice):
    """A device whose process waits for a core for a twentieth of the time."""

    def watch(self, marks: bool = False) -> Any:
        return replace(super().watch(marks), queued_ns=lambda: self.now // 20)


def test_waiting_for_a_core_is_compared_with_differences_of_single_steps() -> None:
    """One step in twenty takes 10 ms instead of 1 ms: 0.45 ms per step beyond the median, of which the wait explains
    0.07 ms. A block has about ten steps.
    """
    draw = random.Random(6)
    timing = Queued(lambda *_: MILLISECOND * (10 if draw.random() < 0.05 else 1)).time(DEFAULT)
    assert 8 < timing["block_steps"] < 12
    assert timing["step_time_s"] == timing["step_time_mean_s"] > 0.0012


def test_a_single_disturbance_does_not_move_the_time_of_like_steps() -> None:
    timing = FakeDevice(10 * MILLISECOND, pauses_ns={80: 100 * MILLISECOND}).time(DEFAULT)
    assert timing["step_time_s"] == pytest.approx(0.01)


def test_unlike_blocks_are_timed_for_as_long_as_the_effort_allows() -> None:
    def timed_s(cost_ms: Callable[[int, int], float]) -> float:
        return float(FakeDevice(cost_ms).time(replace(DEFAULT, timed_tolerance=9))["timed_s"])

    draw = random.Random(3)
    assert timed_s(in_turn(10)) < 0.3
    assert timed_s(lambda *_: MILLISECOND * draw.choice([10, 10, 10, 30])) > 0.49


@pytest.mark.parametrize(
    ("samples", "cpu", "waits", "expected"),
    [
        ([1, 1, 3, 1, 1, 3, 1, 3, 1, 1], [1, 1, 3, 1, 1, 3, 1, 3, 1, 1], False, True),
        ([1, 1, 3, 1, 1, 3, 1, 3, 1, 1], [1] * 10, False, False),  # others ran in between
        ([1, 1, 3, 1, 1, 3, 1, 3, 1, 1], [1] * 10, True, True),  # a loader's workers did
        ([1, 1, 3, 1, 1, 3, 1, 1, 1, 1], [1, 1, 3, 1, 1, 3, 1, 1, 1, 1], False, False),  # two may be chance
        ([1, 1, 1, 1, 1, 3, 3, 3, 3, 1], [1, 1, 1, 1, 1, 3, 3, 3, 3, 1], False, False),  # a phase, such as of a clock
        ([1.0] * 10, [1.0] * 10, True, False),
        ([1.0, 1.04] * 5, [1.0, 1.04] * 5, False, False),
    ],
)
def test_whether_blocks_differ_by_themselves(
    samples: list[float], cpu: list[float], waits: bool, expected: bool
) -> None:
    assert differ_by_themselves(samples, cpu, waits) is expected


@pytest.mark.parametrize(("queued_s", "expected"), [(0.0, True), (2.9, True), (3.1, False)])
def test_waiting_for_a_core_explains_differences(queued_s: float, expected: bool) -> None:
    """The blocks take 6 s beyond the median; of several threads, those that do not wait spin."""
    samples = [1, 1, 3, 1, 1, 3, 1, 3, 1, 1]
    assert differ_by_themselves(samples, samples, False, queued_s) is expected


@pytest.mark.parametrize(
    ("samples", "cycle"),
    [
        ([1, 9] * 20, 2),
        ([1, 1, 1, 9] * 3, 4),
        ([1, 1, 1, 9] * 2, 1),  # fewer than three cycles
        ([*[1, 1, 1, 9] * 10, 1, 1], 4),
        ([*[1, 2] * 10, 1e3, *[2, 1] * 10], 2),  # one disturbance
        ([1.0] * 40, 1),
        ([1.0, 1.02] * 20, 1),
        ([1 + step / 100 for step in range(60)], 1),  # a drift
    ],
)
def test_the_cycle_of_samples(samples: list[float], cycle: int) -> None:
    assert cycle_of(samples) == cycle


def test_noise_rarely_looks_like_a_cycle() -> None:
    draw = random.Random(4)
    found = [cycle_of([draw.lognormvariate(0, 0.1) for _ in range(40)]) for _ in range(100)]
    assert sum(length > 1 for length in found) <= 5


def test_unevenness_by_hand() -> None:
    assert unevenness([1, 1, 1, 2]) == pytest.approx(0.25)

"""Reference cycles left by steps are collected between samples, never within a sample."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from crossover.measurement.clock.latency import correct_methods, measure_latencies, time_cold
from crossover.measurement.clock.timing import time_steps
from crossover.measurement.remedies import Method, time_interleaved
from fake_device import EFFORT, MILLISECOND, SECOND, FakeDevice

STEP_S = pytest.approx(1e-3)
CYCLES = 10


class Cycle:
    alive = 0

    def __init__(self) -> None:
        self.itself = self
        Cycle.alive += 1

    def __del__(self) -> None:
        Cycle.alive -= 1


class Leaking(FakeDevice):
    """A device whose steps take 1 ms and leave reference cycles; records how many exist at most."""

    def __init__(self) -> None:
        super().__init__(MILLISECOND)
        self.most = 0

    def step(self) -> None:
        super().step()
        for _ in range(CYCLES):
            Cycle()
        self.most = max(self.most, Cycle.alive)


@contextmanager
def collections_of(device: FakeDevice) -> Iterator[list[int]]:
    """Record the generations that are collected; each collection takes a second of the device's clock."""
    generations: list[int] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])
            device.now += SECOND

    gc.callbacks.append(collected)
    try:
        yield generations
    finally:
        gc.callbacks.remove(collected)


@pytest.fixture
def leaking() -> Iterator[Leaking]:
    gc.collect()
    Cycle.alive = 0
    yield Leaking()
    gc.collect()


def test_cycles_are_collected_between_blocks_and_never_within_one(leaking: Leaking) -> None:
    with collections_of(leaking) as generations:
        samples_s = time_steps(leaking.step, 1, EFFORT, leaking.watch())[0]["samples_s"]
    assert samples_s == [STEP_S] * 50
    assert leaking.steps > 1000
    # A block of 20 steps leaves 200 cycles, and fewer than that remain from before, when a collection was not yet due.
    assert leaking.most <= 2 * 20 * CYCLES
    # One full collection; then 100 single steps leave 1000 cycles, and each of 52 blocks leaves enough for a
    # collection. Every twelfth includes the next generation, none the oldest.
    assert generations[0] == 2
    assert 50 <= len(generations) - 1 <= 62
    assert generations.count(1) == (len(generations) - 1) // 12
    assert generations.count(2) == 1


def test_a_step_without_cycles_causes_no_collection() -> None:
    device = FakeDevice(MILLISECOND)
    with collections_of(device) as generations:
        time_steps(device.step, 1, replace(EFFORT, timed_max_s=2.0), device.watch())
    assert generations == [2]


def cold(device: Leaking) -> list[float]:
    return list(time_cold(device.step, 300, device.watch()))


def latencies(device: Leaking) -> list[float]:
    methods = correct_methods(device.step, device.watch(marks=True))
    columns = measure_latencies(methods, 300, seed=0)
    return [*columns["latencies_s"], *columns["latencies_device_s"]]


def remedies(device: Leaking) -> list[float]:
    return list(time_interleaved({"a": Method(device.step), "b": Method(device.step)}, 0.02, device.watch()).values())


@pytest.mark.parametrize("timed", [cold, latencies, remedies, lambda device: device.time()])
def test_the_collector_is_off_after_the_first_step_and_restored_afterwards(
    leaking: Leaking, monkeypatch: pytest.MonkeyPatch, timed: Callable[[Leaking], object]
) -> None:
    states: list[bool] = []
    step = leaking.step
    monkeypatch.setattr(leaking, "step", lambda: (states.append(gc.isenabled()), step()))
    timed(leaking)
    assert not any(states[1:])
    assert gc.isenabled()

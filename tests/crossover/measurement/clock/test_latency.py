"""Latency on a fake clock; the numbers are worked out by hand."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from crossover.config.studies import LATENCY_TURN_STEPS
from crossover.errors import TooSlowError
from crossover.measurement.clock.latency import (
    LEAST_STEPS,
    OTHERS_STEPS,
    correct_methods,
    fitting,
    measure_latencies,
    mistaken_methods,
    time_cold,
    time_device_latencies,
    time_latencies,
    time_unsynchronised,
)
from crossover.measurement.clock.timing import Stopwatch
from crossover.tables.columns import COLUMNS
from fake_device import MICROSECOND, MILLISECOND, SECOND, FakeDevice


def gpu(**others: Any) -> FakeDevice:
    """A GPU on which it takes 10 us to queue a step and 1 ms to run it."""
    return FakeDevice(10 * MICROSECOND, device_ns=MILLISECOND, **others)


class Log:
    """Records the order of steps (`s`), synchronisations (`w`), marks (`m`) and readings of the clock (`c`)."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, letter: str) -> int:
        self.text += letter
        return 0

    def watch(self, marks: bool = True) -> Stopwatch:
        return Stopwatch(
            wall_ns=lambda: self.add("c"),
            cpu_ns=lambda: 0,
            synchronise=lambda: self.add("w") and None,
            mark=(lambda: self.add("m")) if marks else None,
            between_s=(lambda *_: 0.0) if marks else None,
        )

    def step(self) -> None:
        self.add("s")


@pytest.mark.parametrize(
    ("method", "order"),
    [
        (time_latencies, 3 * "wcswc"),
        (time_device_latencies, 3 * "wmcsmwc"),
        (time_cold, 3 * "wcswc"),
        (time_unsynchronised, "w" + 3 * "csc" + "w"),
    ],
)
def test_the_order_of_steps_synchronisations_and_clock_readings(method: Callable[..., Any], order: str) -> None:
    log = Log()
    method(log.step, 3, log.watch())
    assert log.text == order


def test_the_devices_latency_lies_between_two_marks() -> None:
    """It excludes the synchronisation's 5 ms, which the host's clock includes."""
    device = gpu(wait_ns=5 * MILLISECOND)
    assert time_device_latencies(device.step, 4, device.watch(marks=True)) == pytest.approx([1.01e-3] * 4)
    assert time_latencies(device.step, 4, device.watch(marks=True)) == pytest.approx([6.01e-3] * 4)


def test_only_two_cold_steps_run_if_all_would_exceed_the_limit() -> None:
    """Steps take 1 s; those of later passes count towards the limit."""
    device = FakeDevice(SECOND)
    assert len(time_cold(device.step, 50, device.watch(), time_limit_s=110, later_steps=60)) == 50
    device = FakeDevice(SECOND)
    with pytest.raises(TooSlowError, match=r"a step takes 1 s, .* at least 900 s"):
        time_cold(device.step, 300, device.watch(), time_limit_s=899.999, later_steps=600)
    assert device.steps == 2
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("steps", "step_s", "longest_s", "fits"),
    [(300, 0.5, 150, 300), (300, 0.5, 149.9, 299), (300, 10, 60, LEAST_STEPS), (30, 10, 60, 30), (300, 0, 60, 300)],
)
def test_some_steps_are_timed_even_if_they_take_too_long(
    steps: int, step_s: float, longest_s: float, fits: int
) -> None:
    assert fitting(steps, step_s, longest_s) == fits


def test_columns_of_the_correct_methods() -> None:
    """Each method runs one additional step that does not count."""
    device = gpu(wait_ns=5 * MILLISECOND)
    columns = measure_latencies(correct_methods(device.step, device.watch(marks=True)), 6, seed=0)
    ends = ("", "_low", "_high")
    assert columns == {
        "latencies_s": pytest.approx([6.01e-3] * 6),
        **{f"latency_p50{end}_s": pytest.approx(6.01e-3) for end in ends},
        **{f"latency_p{percent}{end}_s": None for percent in (95, 99) for end in ends},  # too few samples
        "latencies_device_s": pytest.approx([1.01e-3] * 6),
    }
    assert device.steps == 2 * (6 + 1)
    assert set(columns) <= set(COLUMNS)


def test_percentiles_by_hand() -> None:
    """The p-th percentile of 0, 1, ..., 400 is 4 p; for the intervals see tests/crossover/test_percentiles.py."""
    starts = (*range(0, OTHERS_STEPS, LATENCY_TURN_STEPS), OTHERS_STEPS)
    turns = zip(starts, (*starts[1:], 401), strict=True)
    numbers = iter(number for start, end in turns for number in (0.0, *range(start, end)))
    columns = measure_latencies({"latencies_s": lambda n: [float(next(numbers)) for _ in range(n)]}, 401, seed=0)
    assert [columns[f"latency_p{percent}_s"] for percent in (50, 95, 99)] == [200, 380, 396]
    assert (columns["latency_p99_low_s"], columns["latency_p99_high_s"]) == (392, 400)
    alike = {"latencies_s": lambda steps: [1.0] * steps}
    assert [measure_latencies(alike, steps, seed=0)["latency_p99_s"] for steps in (368, 367)] == [1.0, None]


def turns(seed: int) -> tuple[str, dict[str, Any]]:
    """The order of the methods, and the columns; a method's samples are the indices of its calls."""
    log: list[tuple[str, int]] = []

    def method(name: str) -> Callable[[int], list[float]]:
        def measure(count: int) -> list[float]:
            log.append((name, count))
            return [float(len(log))] * count

        return measure

    methods = {"latencies_s": method("R"), "U": method("U"), "T": method("T")}
    columns = measure_latencies(methods, OTHERS_STEPS + 207, seed)
    assert [count for _, count in log[::2]] == [1] * (len(log) // 2)
    assert [name for name, _ in log[::2]] == [name for name, _ in log[1::2]]
    return "".join(name for name, _ in log[1::2]), columns


def test_methods_take_turns_in_an_order_set_by_the_seed_and_then_in_reverse() -> None:
    """Rounds of three and their reverses, then the correct method alone; a step that does not count before each."""
    order, columns = turns(seed=1)
    rounds = [order[start : start + 3] for start in range(0, len(order) - 1, 3)]
    assert len(rounds) == OTHERS_STEPS / LATENCY_TURN_STEPS
    assert all(sorted(first) == ["R", "T", "U"] for first in rounds)
    assert rounds[1::2] == [first[::-1] for first in rounds[::2]]
    assert len(set(rounds)) > 2
    assert order[-2:] == rounds[-1][-1] + "R"
    assert len(columns["latencies_s"]) == OTHERS_STEPS + 207
    assert len(columns["U"]) == len(columns["T"]) == OTHERS_STEPS
    assert set(columns["U"]) == {2 * (turn + 1) for turn, name in enumerate(order) if name == "U"}
    assert turns(seed=1) == turns(seed=1)
    assert len({turns(seed)[0] for seed in range(9)}) > 3


def test_the_mistaken_methods() -> None:
    device, other = gpu(), gpu()
    methods = mistaken_methods(device.step, other.step, device.watch(marks=True))
    assert methods["latencies_unsynchronised_s"](4) == pytest.approx([1e-5] * 4)
    methods["latencies_transfer_s"](4)
    assert (device.steps, other.steps) == (4, 4)
    assert set(methods) <= set(COLUMNS)
    assert list(mistaken_methods(device.step, None, device.watch())) == ["latencies_unsynchronised_s"]

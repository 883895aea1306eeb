"""Interleaved timing on a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.clock.turns import ROUNDS, Method, time_in_turns

pytestmark = pytest.mark.usefixtures("light_heap")


class Machine:
    """A clock that steps and settings move on."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ran: list[str] = []

    def watch(self) -> Stopwatch:
        return Stopwatch(wall_ns=lambda: self.now_ns, cpu_ns=lambda: 0, synchronise=lambda: None)

    def method(self, name: str, step_ms: float, setting_ms: float = 0) -> Method:
        def step() -> None:
            self.now_ns += round(step_ms * 1e6)
            self.ran.append(name)

        @contextmanager
        def setting() -> Iterator[None]:
            self.now_ns += round(setting_ms * 1e6)
            yield
            self.now_ns += round(setting_ms * 1e6)

        return Method(step, setting)


def test_each_way_takes_its_own_time_and_its_setting_none() -> None:
    machine = Machine()
    methods = {
        "quick": machine.method("quick", 1),
        "slow": machine.method("slow", 40),
        "set": machine.method("set", 3, setting_ms=500),
    }
    assert time_in_turns(methods, 0.02, machine.watch()) == pytest.approx({"quick": 0.001, "slow": 0.04, "set": 0.003})
    assert machine.ran.count("quick") == 2 + ROUNDS * (1 + 20)  # blocks of 20 ms, each after a step that does not count


def test_every_second_round_runs_backwards() -> None:
    machine = Machine()
    time_in_turns({"a": machine.method("a", 1), "b": machine.method("b", 1)}, 0.002, machine.watch())
    order = "".join(machine.ran)
    assert order[:4] == "ab" + "ba"  # the first look
    assert order[4:] == "aaabbb" + "bbbaaa" + "aaabbb"  # a step that does not count, and two that do
    assert len(order[4:]) == ROUNDS * 6


def test_a_step_as_long_as_a_block_counts_from_the_first_look_on_and_runs_once_more() -> None:
    """The median of its three: 1 s, 4 s and 2 s."""
    machine = Machine()
    lasts_ms = iter([1000, 4000, 2000])

    def step() -> None:
        machine.now_ns += round(next(lasts_ms) * 1e6)
        machine.ran.append("b")

    times_s = time_in_turns({"a": machine.method("a", 1), "b": Method(step)}, 0.002, machine.watch())
    assert times_s == pytest.approx({"a": 0.001, "b": 2.0})
    assert "".join(machine.ran) == "ab" + "ba" + "aaab" + "aaa" + "aaa"


@pytest.mark.parametrize("good_steps", [0, 1, 5])
def test_a_way_that_raises_is_left_out_unless_it_is_the_first(good_steps: int) -> None:
    """Such as an environment that ends, in the first look or later."""
    machine = Machine()
    plain = machine.method("plain", 1)
    left = iter(range(good_steps))

    def ending() -> None:
        plain.step()
        next(left)

    methods = {"plain": plain, "ending": Method(ending), "slow": machine.method("slow", 40)}
    assert time_in_turns(methods, 0.02, machine.watch()) == pytest.approx({"plain": 0.001, "slow": 0.04})
    with pytest.raises(StopIteration):
        time_in_turns({"ending": Method(ending), "plain": plain}, 0.02, machine.watch())

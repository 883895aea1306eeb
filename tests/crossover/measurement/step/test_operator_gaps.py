"""The host's own work between operators, on a clock that the step moves on."""

from __future__ import annotations

import pytest
import torch

from crossover.measurement.step.operator_gaps import CALLING_S, STEPS, host_work_s


class Host:
    """Works for as long as it is told, and adds numbers."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.number = torch.zeros(1)

    def clock_s(self) -> float:
        return self.now_s

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    def operate(self) -> None:
        self.number.add_(1)


def test_work_before_between_and_after_operators_counts_less_the_calling_of_each() -> None:
    host = Host()

    def step() -> None:
        for seconds in (0.1, 0.02, 0.003):
            host.work(seconds)
            host.operate()
        host.work(0.5)

    assert host_work_s(step, host.clock_s) == pytest.approx(0.623 - 4 * CALLING_S)


def test_python_that_calls_operators_is_no_work_of_its_own() -> None:
    host = Host()

    def step() -> None:
        for _ in range(100):
            host.work(0.9 * CALLING_S)
            host.operate()

    assert host_work_s(step, host.clock_s) == 0


def test_the_time_of_an_operator_is_none_of_the_hosts_own() -> None:
    """The clock shows 0 s as each operator begins and 9 s as it ends."""
    readings = iter([0.0, 0.0, 9.0, 9.0] * STEPS)
    host = Host()
    assert host_work_s(host.operate, lambda: next(readings)) == 0


def test_stalls_of_the_machine_do_not_count() -> None:
    host, stalls_s = Host(), iter([0.0, 7.0, 0.0, 1.0, 3.0])

    def step() -> None:
        host.work(0.25 + next(stalls_s))
        host.operate()

    assert host_work_s(step, host.clock_s) == pytest.approx(0.25 - CALLING_S)


def test_operators_of_the_backward_pass_count_too() -> None:
    """Work in a hook lies between two of them."""
    host = Host()
    weight = torch.ones(3, requires_grad=True)

    def step() -> None:
        doubled = weight * 2
        doubled.register_hook(lambda _gradient: host.work(0.25))
        doubled.sum().backward()

    assert host_work_s(step, host.clock_s) == pytest.approx(0.25 - CALLING_S)

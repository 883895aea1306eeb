"""The gate on simulated runs: how often it fails for equal runs, and how often it detects a planted slowdown."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from check_gate import ONE_QUIET, PLANTED, SHARED, TYPICAL, GateCase, simulate_gates

from crossover.compare.intervals import t_quantile
from crossover.topics.gate.gate import COMPARABLE_IN, Gate, calibrate, gate_of
from crossover.topics.gate.table import compare_runs

Row = Callable[..., dict[str, Any]]


def simulated(trials: int, by: float, count: int = 40, spread: str = TYPICAL, **options: Any) -> list[Gate]:
    return simulate_gates(GateCase(spread, trials, by), count, 0, **options)


def failed(gates: list[Gate]) -> int:
    return sum(gate.outcome == "slower" for gate in gates)


@pytest.mark.parametrize("trials", [3, 8])
def test_the_gate_seldom_fails_for_equal_runs(trials: int) -> None:
    assert failed(simulated(trials, 0.0, 25)) <= 2


@pytest.mark.parametrize(("trials", "by"), [(16, 0.02), (40, 0.05)])
def test_a_slowdown_of_10_percent_in_one_of_20_cells_is_detected(trials: int, by: float) -> None:
    gates = simulated(trials, by, 10, slowdown=1.1)
    assert failed(gates) >= 9
    assert all(set(gate.slower["size"]) <= {PLANTED} for gate in gates)


@pytest.mark.parametrize(
    ("spread", "trials", "by", "outcome"),
    [
        (TYPICAL, 16, 0.02, "passed"),
        (TYPICAL, 4, 0.02, "undecided"),
        (SHARED, 10, 0.05, "undecided"),
        (SHARED, 40, 0.05, "passed"),
    ],
)
def test_equal_runs_pass_only_if_a_slowdown_far_above_the_limit_would_be_detected(
    spread: str, trials: int, by: float, outcome: str
) -> None:
    assert {gate.outcome for gate in simulated(trials, by, 5, spread)} == {outcome}


@pytest.mark.slow
def test_a_quiet_cell_is_judged_by_its_own_spread_among_noisy_ones() -> None:
    """Trials of the quiet cell differ by 1 %, those of the others by 10 to 20 %."""
    gates = simulated(8, 0.02, 10, ONE_QUIET, slowdown=1.1)
    assert all(PLANTED in set(gate.slower["size"]) for gate in gates)
    assert not failed(simulated(8, 0.02, 1, ONE_QUIET))


def test_differences_between_identical_runs_do_not_count() -> None:
    """Runs differ by 3 % (standard deviation), far more than the spread of their trials suggests.

    With a false-alarm rate of 5 %, three or more of 10 calibrated gates fail in 1 % of simulations.
    """
    assert failed(simulated(12, 0.02, 10, between=0.03, cells=6)) > 2
    calibrated = simulated(12, 0.02, 10, between=0.03, cells=6, identical=5)
    assert failed(calibrated) <= 2
    assert all(gate.calibration and gate.limit == max(gate.calibration.significant, 0.02) for gate in calibrated)


def steady(row: Row, times: dict[int, list[float]], **values: Any) -> pd.DataFrame:
    return pd.DataFrame(
        [
            row(size=size, trial=trial, step_time_s=time, **values)
            for size, times_s in times.items()
            for trial, time in enumerate(times_s, start=1)
        ]
    )


def test_a_cell_by_hand(row: Row) -> None:
    """The logs of the first run are 0 ± 0.01, those of the second ln 1.2 ± 0.01; the variance of each mean is 1e-4."""
    first = steady(row, {2: [math.exp(0.01), math.exp(-0.01)]})
    second = first.assign(step_time_s=1.2 * first["step_time_s"])
    gate = gate_of(first, second, by=0.05)
    half_width = float(t_quantile(2)) * math.sqrt(2e-4)  # 4.303 x 0.01414
    (cell,) = gate.cells.to_dict("records")
    assert cell["ratio_high"] == pytest.approx(math.exp(half_width) / 1.2)
    assert half_width == pytest.approx(0.06085, rel=1e-3)
    assert gate.outcome == "slower"  # 1.063 / 1.2 = 0.886 is less than 1 / 1.05
    assert gate_of(first, second, by=0.14).outcome == "passed"  # 1 / 1.14 = 0.877
    assert gate_of(second, first).outcome == "passed"
    # 1.886 is the 90 % quantile of Student's t with two degrees of freedom.
    assert cell["detectable"] == pytest.approx(1.05 * math.exp(half_width + 1.886 * math.sqrt(2e-4)) - 1, rel=1e-4)


def test_no_pair_of_identical_runs_exceeds_the_limit(row: Row) -> None:
    """Without a spread of trials, runs with times of 1.01, 1.03 and 1.02 differ by at most 1.03 / 1.01."""
    runs = {str(factor): steady(row, {2: [factor, factor]}) for factor in (1.01, 1.03, 1.02)}
    calibration = calibrate(runs)
    assert [calibration.significant, calibration.measured] == pytest.approx([1.03 / 1.01 - 1] * 2, rel=1e-4)
    assert gate_of(runs["1.01"], runs["1.03"], 0.0, runs).outcome == "passed"
    assert gate_of(runs["1.01"], steady(row, {2: [1.04, 1.04]}), 0.0, runs).outcome == "slower"


def test_a_difference_within_the_intervals_is_measured_but_not_significant(row: Row) -> None:
    """The means differ by a factor of 1.2, the two trials of each run by a factor of 2."""
    runs = {str(factor): steady(row, {2: [factor, 2 * factor]}) for factor in (1.0, 1.2)}
    calibration = calibrate(runs)
    assert (calibration.significant, calibration.measured) == (0, pytest.approx(0.2))


@pytest.mark.parametrize(("factors", "outlier"), [((1.0, 1.01, 1.02, 1.03, 2.0), "2.0"), ((1.0, 1.1, 1.2, 1.3), None)])
def test_an_outlier_among_identical_runs_is_named(row: Row, factors: Any, outlier: str | None) -> None:
    runs = {str(factor): steady(row, {2: [factor, factor]}) for factor in factors}
    assert calibrate(runs, 0.05).outlier == outlier


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ({2: [1.0, 1.0], 3: [1.0, 1.0]}, {2: [1.0, 1.0]}, "missing"),
        ({2: [1.0, 1.0]}, {2: [1.0, 1.0], 3: [1.0, 1.0]}, "missing"),
        ({2: [1.0, 1.0], 3: [1.0]}, {2: [1.0, 1.0], 3: [1.0]}, "single_trial"),
        ({2: [1.0, 1.0], 3: [1.0, 1.0]}, {2: [1.0, 1.0], 3: [1.0]}, "single_trial"),
        ({2: [1.0], 3: [1.0]}, {2: [1.0]}, "missing"),  # missing takes precedence over a single trial
        ({2: [1.0, 1.0], 3: [1.0, 1.0]}, {2: [2.0, 2.0]}, "slower"),  # slower takes precedence over missing
        ({2: [1.0, 1.0]}, {3: [1.0, 1.0]}, "missing"),
    ],
)
def test_cells_that_cannot_be_judged_do_not_pass(row: Row, first: Any, second: Any, outcome: str) -> None:
    assert gate_of(steady(row, first), steady(row, second)).outcome == outcome


def test_a_cell_without_a_time_counts_if_it_had_a_time_before(row: Row) -> None:
    both = steady(row, {2: [1.0, 1.0], 3: [1.0, 1.0]})
    lost = both.assign(status=both["size"].map({2: "ok", 3: "oom"}))
    assert [gate_of(*pair).outcome for pair in ((both, lost), (lost, both), (lost, lost))] == [
        "missing",
        "passed",
        "passed",
    ]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"device_name": "Brand C2"}, "hardware"),
        ({"power_limit_w": 350.0}, "hardware"),
        ({"torch_version": "2.13.0"}, "torch"),
        ({"model_key": "b", "code_key": "b"}, "model"),
    ],
)
def test_a_difference_makes_runs_not_comparable_unless_it_is_allowed(
    row: Row, changed: dict[str, str], what: str
) -> None:
    first = steady(row, {2: [1.0, 1.0]}, torch_version="2.12.0", model_key="a", measurement_key="a", code_key="a")
    first["power_limit_w"] = 700.0
    second = first.assign(step_time_s=2.0, **changed)
    gate = gate_of(first, second)
    assert (gate.outcome, list(gate.differences)) == ("not_comparable", [what])
    assert gate_of(first, second, allowed=[what]).outcome == "slower"
    assert gate_of(first, second.assign(hostname="node7"), allowed=COMPARABLE_IN).outcome == "slower"


def test_a_noisy_cell_that_is_faster_is_decided(row: Row) -> None:
    """The old run's trials differ by a factor of 2, but the new run takes a tenth of its time."""
    first, second = steady(row, {2: [1.0, 2.0] * 5}), steady(row, {2: [0.1, 0.1] * 5})
    gate = gate_of(first, second)
    assert gate.cells["detectable"].min() > 0.5
    assert gate.outcome == "passed"


def test_the_interval_of_a_gates_cell_is_the_simultaneous_one(row: Row) -> None:
    """Ratio 1.1, whose own interval excludes 1, and whose interval among 20 cells includes it."""
    times = {size: [1.0, 1.05, 1.1] for size in range(20)}
    first, second = steady(row, times), steady(row, times)
    second["step_time_s"] /= 1.1
    (alone, *_), (together, *_) = (
        cells.to_dict("records") for cells in (compare_runs(first, second), gate_of(first, second).cells)
    )
    assert together["ratio_high"] / together["ratio_low"] != alone["ratio_high"] / alone["ratio_low"]
    assert together["within"] == (together["ratio_low"] <= 1 <= together["ratio_high"])

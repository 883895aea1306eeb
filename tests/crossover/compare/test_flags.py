"""Flags of cells from simulated trials: how often quiet and disturbed hosts have them, by the number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.compare.cells import summarise
from crossover.compare.flags import cell_flags
from crossover.drift import drift_of

Row = Callable[..., dict[str, Any]]
Draw = Callable[[np.random.Generator, int], Any]

RUNS = 1000
TRIALS = (3, 5, 8, 16)


def share(flag: str, trials: int, draw: Draw) -> float:
    """The share of simulated cells with a flag; `draw` makes ln(time) of a cell's trials."""
    generator = np.random.default_rng(trials)
    cells = (np.exp(draw(generator, trials)).tolist() for _ in range(RUNS))
    return sum(flag in cell_flags(times_s, [()] * trials) for times_s in cells) / RUNS


def spread(deviation: float) -> Draw:
    return lambda generator, trials: generator.normal(0, deviation, trials)


def two_states(factor: float, share_of_slow: float = 0.5) -> Draw:
    """Trials of 5 % spread on a host that is slower by `factor` in some of them."""
    return lambda generator, trials: (
        generator.normal(0, 0.05, trials) + np.log(factor) * (generator.random(trials) < share_of_slow)
    )


@pytest.mark.parametrize("trials", TRIALS)
def test_a_spread_as_on_quiet_hosts_is_not_flagged_whatever_the_number_of_trials(trials: int) -> None:
    """The ratio of the slowest to the fastest trial was above 1.25 in 26 % (3 trials) to 98 % (16) of cells at 10 %."""
    assert share("trials_differ", trials, spread(0.05)) == 0
    assert share("trials_differ", trials, spread(0.10)) <= 0.004
    assert share("trials_differ", trials, spread(0.15)) <= 0.03


@pytest.mark.parametrize(
    ("draw", "least"),
    [
        (spread(0.4), (0.25, 0.45, 0.65, 0.88)),
        (two_states(2.0), (0.1, 0.4, 0.75, 0.98)),
        (two_states(1.5), (0, 0, 0.58, 0.94)),
        (two_states(1.5, 0.25), (0, 0, 0.23, 0.72)),
    ],
)
def test_two_states_and_a_wide_spread_are_flagged_the_surer_the_more_trials(
    draw: Draw, least: tuple[float, ...]
) -> None:
    shares = [share("trials_differ", trials, draw) for trials in TRIALS]
    assert all(found >= wanted for found, wanted in zip(shares, least, strict=True)), shares


def test_a_single_slow_trial_of_many_is_no_flag() -> None:
    assert cell_flags([1.0, 1.01, 1.02, 0.99] * 4, [()] * 16) == []
    assert cell_flags([1.0, 1.01, 1.02, 0.99] * 3 + [1.0, 1.0, 1.0, 1.5], [()] * 16) == []


def test_groups_need_three_trials_each() -> None:
    """The groups are 1.4 times apart, and 1 % wide; the standard deviation of all trials is below 18 %."""
    low, high = [1.0, 1.01, 1.02], [1.4, 1.41, 1.42]
    assert cell_flags([*low, *high], [()] * 6) == ["trials_differ"]
    assert cell_flags([*low, *high[:2]], [()] * 5) == []
    assert cell_flags([*low, *(time / 1.15 for time in high)], [()] * 6) == []  # 1.22 times apart


@pytest.mark.parametrize(("deviations", "raised"), [(5.5, []), (6.5, ["trials_differ"])])
def test_groups_are_six_standard_deviations_apart(deviations: float, raised: list[str]) -> None:
    """Groups of d below, at and above their means have standard deviation d: 4 d^2 over 4 degrees of freedom."""
    width = 0.3 / deviations
    times_s = [math.exp(mean + step * width) for mean in (0, 0.3) for step in (-1, 0, 1)]
    assert cell_flags(times_s, [()] * 6) == raised


@pytest.mark.parametrize("flag", ["busy_host", "drift", "warmup_capped", "diverged"])
@pytest.mark.parametrize(
    ("flagged", "trials", "raised"),
    [(1, 1, True), (1, 2, True), (1, 3, False), (2, 3, True), (1, 5, False), (2, 5, True), (5, 16, False)],
)
def test_a_flag_of_trials_is_one_of_the_cell_above_a_third(flag: str, flagged: int, trials: int, raised: bool) -> None:
    flags = [[flag]] * flagged + [[]] * (trials - flagged)
    assert cell_flags([1.0] * trials, flags) == ([flag] if raised else [])


def test_a_share_of_drifting_trials_as_on_a_shared_host_flags_few_cells() -> None:
    """On an H100 host, 7 % of trials drifted; with "any trial", 20 % (3 trials) to 69 % (16) of cells had the flag."""
    generator = np.random.default_rng(3)
    for trials in TRIALS:
        flags = [[["drift"] * bool(drifts) for drifts in generator.random(trials) < 0.07] for _ in range(RUNS)]
        assert sum(cell_flags([1.0] * trials, of_cell) == ["drift"] for of_cell in flags) / RUNS <= 0.06


@pytest.mark.parametrize("flag", ["not_checked", "incomplete", "cast"])
def test_what_the_first_trial_alone_can_tell_is_a_flag_of_the_cell(flag: str) -> None:
    assert cell_flags([1.0] * 16, [[flag], *[[]] * 15]) == [flag]


def drifting(trials: int, drift: float, deviation: float) -> float:
    """The share of cells with flag `drift` if that of their trials scatters around a mean."""
    generator = np.random.default_rng(trials)
    cells = np.exp(generator.normal(np.log1p(drift), deviation, (RUNS, trials)))
    return sum("drift" in cell_flags([1.0] * trials, [()] * trials, drifts) for drifts in cells.tolist()) / RUNS


@pytest.mark.parametrize("trials", TRIALS)
def test_a_drift_in_all_trials_is_flagged_and_drifts_both_ways_are_not(trials: int) -> None:
    """The drift of trials without a common direction scattered by 10 to 15 % on an H100 host."""
    assert drifting(trials, 0.10, 0.01) >= 0.9
    assert drifting(trials, 0.20, 0.03) >= 0.9
    assert drifting(trials, 0.0, 0.12) <= 0.05
    assert drifting(trials, 0.05, 0.03) <= 0.08


def test_the_drift_of_a_cell_is_that_of_its_samples(row: Row) -> None:
    """Each of three trials gets slower by 10 or 11 %, so none has a flag of its own, which starts at 25 %."""
    samples = [[1.0] * 10 + [1.05] * 10 + [1.1 + trial / 100] * 10 for trial in range(2)]
    rows = [row(trial=trial, samples_s=samples[trial % 2]) for trial in (1, 2, 3)]
    assert drift_of(samples[0]) == pytest.approx(1.1)
    assert summarise(pd.DataFrame(rows))["flag_names"].tolist() == [["drift"]]
    steady = [line | {"samples_s": [1.0, 1.1] * 10} for line in rows]
    assert summarise(pd.DataFrame(steady))["flag_names"].tolist() == [[]]
    assert summarise(pd.DataFrame([line | {"samples_s": None} for line in rows]))["flag_names"].tolist() == [[]]

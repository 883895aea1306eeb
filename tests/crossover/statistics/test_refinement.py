from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pytest

from crossover.config.studies import Refinement
from crossover.statistics.crossover import Crossover, estimate_crossover
from crossover.statistics.refinement import Plan, plan_refinement


def table(cpu: Mapping[int, float], trials: int = 3) -> pd.DataFrame:
    """A GPU of 1 s beside a CPU that takes these times, the same in every trial."""
    rows = [
        (size, side, trial, time)
        for size, cpu_s in cpu.items()
        for side, time in (("cpu", cpu_s), ("gpu", 1.0))
        for trial in range(1, trials + 1)
    ]
    return pd.DataFrame(rows, columns=["size", "side", "trial", "step_time_s"])


def plan(
    cpu: Mapping[int, float],
    stage: int = 1,
    trials: int = 3,
    refinement: Refinement = Refinement(),  # noqa: B008
    granularity: int = 1,
    sizes: Sequence[int] | None = None,
    found: Crossover | None = None,
) -> Plan:
    found = found or estimate_crossover(table(cpu, trials), "cpu", "gpu")
    offered = None if sizes is None else (*sizes,)
    return plan_refinement(found, set(cpu), stage, trials, refinement, granularity, offered)


def test_a_bracket_is_halved_on_the_log_axis() -> None:
    """sqrt(100 x 400) = 200; then sqrt(200 x 400) = 282.8, which rounds up."""
    assert plan({10: 0.1, 100: 0.5, 400: 3.0}) == Plan(sizes=(200,))
    assert plan({10: 0.1, 100: 0.5, 200: 0.9, 400: 3.0}, stage=2) == Plan(sizes=(283,))


def test_a_reversed_crossover_is_halved_too() -> None:
    assert plan({100: 3.0, 400: 0.5}) == Plan(sizes=(200,))


@pytest.mark.parametrize(
    ("low", "high", "granularity", "middle"),
    [
        (64, 512, 64, 192),  # geometric middle 181.02: 192 is nearer than 128
        (8, 32, 8, 16),
        (100, 200, 64, 128),  # ends need not be multiples; middle 141.4
        (128, 192, 64, None),  # nothing lies strictly between
        (1, 2, 1, None),
        (1, 3, 1, 2),  # middle 1.73: of 1 and 2 only 2 lies between
        (2, 4, 3, 3),  # middle 2.83
        (6, 8, 5, None),
    ],
)
def test_new_sizes_are_multiples_of_the_granularity(low: int, high: int, granularity: int, middle: int | None) -> None:
    expected = Plan() if middle is None else Plan(sizes=(middle,))
    assert plan({low: 0.5, high: 2.0}, granularity=granularity) == expected


def test_a_workload_that_builds_some_sizes_only_gets_one_of_these() -> None:
    offered = (18, 34, 50, 101, 152)
    assert plan({18: 0.5, 152: 2.0}, sizes=offered) == Plan(sizes=(50,))  # middle 52.3
    assert plan({18: 0.5, 50: 2.0}, sizes=offered) == Plan(sizes=(34,))  # middle 30.0
    assert plan({34: 0.5, 50: 2.0}, sizes=offered) == Plan()


def test_a_size_that_was_measured_is_not_measured_again() -> None:
    """An exact tie at the middle leaves the bracket as wide as it was."""
    assert plan({100: 0.5, 200: 1.0, 400: 2.0}, sizes=(150, 200)) == Plan(sizes=(150,))


@pytest.mark.parametrize(
    "cpu",
    [
        {100: 2.0, 400: 3.0},  # below_range
        {100: 0.2, 400: 0.3},  # above_range
        {100: 1.0, 400: 1.0},  # undecided
        {100: 0.5, 200: 2.0, 400: 0.5, 800: 2.0},  # multiple
    ],
)
@pytest.mark.parametrize("stage", [1, 3])
def test_without_one_bracket_nothing_is_planned(cpu: Mapping[int, float], stage: int) -> None:
    assert plan(cpu, stage=stage) == Plan()


def with_interval(low: float | None, high: float | None) -> Crossover:
    return Crossover("bracketed", "", size=200.0, low=low, high=high, bracket=(100.0, 400.0), roots=(200.0,))


@pytest.mark.parametrize(
    ("low", "high", "wide"), [(181.0, 220.0, False), (179.0, 221.0, True), (None, 220.0, True), (181.0, None, True)]
)
def test_further_trials_where_the_interval_is_wider_than_the_target(
    low: float | None, high: float | None, wide: bool
) -> None:
    """Within 10 % of 200 to either side is a width of 40; an end that the trials leave open is no narrow one."""
    expected = Plan(trials={100: 6, 400: 6}) if wide else Plan()
    assert plan({100: 0.5, 400: 2.0}, stage=3, found=with_interval(low, high)) == expected


def test_the_refinement_sets_number_of_stages_width_and_trials() -> None:
    cpu, found = {100: 0.5, 400: 2.0}, with_interval(150.0, 250.0)
    assert plan(cpu, 1, refinement=Refinement(bisections=0, extra_trials=2), found=found) == Plan(
        trials={100: 5, 400: 5}
    )
    assert plan(cpu, 2, refinement=Refinement(bisections=0, extra_trials=2), found=found) == Plan()
    assert plan(cpu, 3, refinement=Refinement(extra_trials=0), found=found) == Plan()
    assert plan(cpu, 3, refinement=Refinement(target_width=0.25), found=found) == Plan()
    assert plan(cpu, 3, refinement=Refinement(target_width=0.24), found=found) == Plan(trials={100: 6, 400: 6})


def test_one_trial_has_no_interval_that_further_trials_could_narrow() -> None:
    assert plan({100: 0.5, 400: 2.0}, stage=3, trials=1, found=with_interval(150.0, 250.0)) == Plan()

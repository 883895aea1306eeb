"""A choice among several cells, by numbers worked out by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crossover.statistics.choices import choose
from crossover.statistics.intervals import SampleMean, time_over_trials


def cell(seconds: float, spread: float = 0.02) -> SampleMean:
    """Three trials whose logarithms have the given standard deviation."""
    return SampleMean.of_times([seconds * math.exp(step * spread) for step in (-1, 0, 1)])


def test_the_fastest_is_held_against_the_fixed_cell_or_else_against_the_next() -> None:
    cells = [cell(3), cell(1), cell(2)]
    found = choose(cells, 0)
    assert (found.chosen, found.other, found.ratio.mean, found.leads) == (1, 0, pytest.approx(3), True)
    assert (choose(cells).other, choose(cells, 1).other) == (2, 2)


def test_its_interval_holds_together_with_those_of_the_other_cells() -> None:
    """Two of three cells could have been held against the chosen one: t of 1 - 0.025 / 2 with 4 degrees of freedom."""
    found = choose([cell(1, 0.02), cell(1.1, 0.02), cell(9, 0.02)]).ratio
    half_width = stats.t.ppf(1 - 0.025 / 2, 4) * math.sqrt(2 / 3) * 0.02
    assert found.low == pytest.approx(1.1 * math.exp(-half_width))


def test_single_trials_lead_over_nothing() -> None:
    found = choose([SampleMean.of_times([1.0]), SampleMean.of_times([9.0])])
    assert (found.leads, found.ratio.low) == (False, None)


def test_an_interval_holds_the_summary_that_gave_it() -> None:
    times = [1.0, 1.1, 1.3]
    summary, direct = SampleMean.of_interval(time_over_trials(times), 3), SampleMean.of_times(times)
    assert (summary.mean, summary.variance, summary.freedom) == pytest.approx((direct.mean, direct.variance, 2))


@pytest.mark.parametrize(("cells", "fixed"), [(6, None), (6, 0), (56, None)])
def test_of_equal_cells_a_significant_choice_is_rare(cells: int, fixed: int | None) -> None:
    """Of 1,000 runs of three trials that differ by 10 %, at most 5 % name a cell significantly faster than another."""
    generator = np.random.default_rng(0)
    found = [
        choose([SampleMean.of_times(times) for times in run], fixed)
        for run in np.exp(generator.normal(0, 0.1, (1000, cells, 3)))
    ]
    assert sum(choice.ratio.low is not None and choice.ratio.low > 1 for choice in found) <= 50
    assert sum(choice.leads for choice in found) <= 50

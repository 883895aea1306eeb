"""The fastest of several ways, without the optimism of the choice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crossover.statistics.fastest import choice, fastest


def test_two_equal_ways_look_faster_by_the_expected_smaller_of_two_draws() -> None:
    """E[min of two standard normals] is -1 / sqrt(pi)."""
    chances, optimism = choice(np.zeros(2), np.ones(2))
    assert chances == pytest.approx([0.5, 0.5])
    assert optimism == pytest.approx(1 / math.sqrt(math.pi))


@pytest.mark.parametrize(
    ("means", "errors"),
    [([0.0, 0.1, 0.3], [0.1, 0.1, 0.1]), ([0.0, 0.05, 0.05], [0.01, 0.1, 0.2]), ([0, 9], [0.1, 0.1])],
)
def test_the_choice_is_that_of_draws(means: list[float], errors: list[float]) -> None:
    draws = np.random.default_rng(0).normal(means, errors, (400_000, len(means)))
    chosen = draws.argmin(axis=1)
    chances, optimism = choice(np.array(means, float), np.array(errors))
    assert chances == pytest.approx(np.bincount(chosen, minlength=len(means)) / len(draws), abs=0.004)
    assert optimism == pytest.approx((np.array(means)[chosen] - draws.min(axis=1)).mean(), abs=5e-4)


def test_a_way_far_ahead_is_taken_as_it_is_and_one_without_a_rival_too() -> None:
    slow, quick = np.log([2.0, 2.1, 2.2]), np.log([1.0, 1.1, 1.05])
    found = fastest([slow, quick])
    assert (found.place, found.logs.tolist()) == (1, pytest.approx(quick.tolist()))
    assert fastest([slow]).optimism == 0
    assert fastest([np.log([2.0]), np.log([1.0])]).logs.tolist() == [0.0]


def test_ways_whose_trials_read_the_same_are_not_told_apart() -> None:
    assert fastest([np.zeros(3), np.zeros(3)]).chances == pytest.approx([0.5, 0.5])


def test_on_average_the_fastest_of_equal_ways_is_as_fast_as_they_are() -> None:
    """Six ways of the same time: the smallest mean of three trials lies 1.27 standard errors below it."""
    generator = np.random.default_rng(1)
    trials = generator.normal(0, 0.1, (4000, 6, 3))
    naive = trials.mean(axis=2).min(axis=1).mean()
    assert naive == pytest.approx(
        -stats.norm.expect(lambda x: 6 * -x * stats.norm.sf(x) ** 5) * 0.1 / math.sqrt(3), rel=0.03
    )
    corrected = np.mean([fastest(list(ways)).logs.mean() for ways in trials])
    assert abs(corrected) < 0.4 * abs(naive)


def test_a_chosen_way_whose_trials_agree_by_chance_takes_over_part_of_the_others_spread() -> None:
    """Own variance 0, of both ways 0.005 with 4 degrees of freedom: shrunk by 4 more, (0 + 4 x 0.005) / (2 + 4)."""
    near, wide = np.array([0.0, 0.0, 1e-6]), np.array([-0.1, 0.0, 0.1]) + 0.01
    found = fastest([near, wide])
    assert found.place == 0
    assert found.logs.mean() == pytest.approx(near.mean() + found.optimism)
    assert found.logs.std(ddof=1) == pytest.approx(math.sqrt(0.02 / 6), rel=0.01)
    assert fastest([near, wide + 5]).logs == pytest.approx(near)

"""Fits are held against the numbers that the times were made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from crossover.statistics.cost_model import NoModelError, fit_cost_model

SIZES = (5, 10, 32, 100, 320, 1000, 2000, 4000)


def made_up(
    a_s: float, b_s: float, c: float, noise: float = 0.0, seed: int = 0, trials: int = 3, sizes: Sequence[int] = SIZES
) -> dict[float, list[float]]:
    """Trials at each size whose logarithms scatter by `noise` about a + b n^c."""
    random = np.random.default_rng(seed)
    return {n: [(a_s + b_s * n**c) * math.exp(noise * random.normal()) for _ in range(trials)] for n in sizes}


@pytest.mark.parametrize(
    ("a_s", "b_s", "c"), [(3e-4, 2e-9, 1.8), (1e-5, 4e-8, 1.0), (2.0, 1e-9, 3.0), (0.0, 1e-6, 2.0)]
)
def test_exact_times_give_back_what_they_were_made_of(a_s: float, b_s: float, c: float) -> None:
    model = fit_cost_model(made_up(a_s, b_s, c))
    assert model.c == pytest.approx(c, rel=1e-3)
    assert model.b_s == pytest.approx(b_s, rel=1e-2)
    assert model.a_s == pytest.approx(a_s, rel=1e-3, abs=1e-8)
    assert model.rms_residual < 1e-4
    assert model.trial_spread == pytest.approx(0, abs=1e-12)
    assert (model.smallest_size, model.largest_size, model.sizes) == (5, 4000, 8)


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_an_outlier_leave_the_truth_in_sight(seed: int) -> None:
    trials = made_up(3e-4, 2e-9, 1.8, noise=0.03, seed=seed)
    trials[100] = [3 * seconds for seconds in trials[100]]
    model = fit_cost_model(trials)
    for n in (5, 100, 1500, 4000):
        assert model.seconds(n) == pytest.approx(3e-4 + 2e-9 * n**1.8, rel=0.1)
    assert model.c == pytest.approx(1.8, abs=0.15)
    # The outlier stays in what is said of the model: a factor of 3 is a miss of 200 %.
    assert model.largest_residual == pytest.approx(2, abs=0.3)
    assert model.trial_spread == pytest.approx(0.03, rel=0.5)


def test_residuals_are_the_factors_by_which_the_model_misses() -> None:
    """A line in log-log with misses of e^±d, orthogonal to a constant and a slope, so that no power law takes them."""
    signs = (1, -1, -1, 1, 0)
    d = 0.01
    trials = {2.0**k: [1e-3 * 2.0 ** (2 * k) * math.exp(d * sign)] for k, sign in enumerate(signs, 1)}
    model = fit_cost_model(trials)
    misses = [math.log(model.seconds(n) / seconds) for n, (seconds,) in trials.items()]
    assert model.largest_residual == pytest.approx(math.exp(max(map(abs, misses))) - 1)
    assert model.rms_residual == pytest.approx(math.exp(math.sqrt(sum(miss**2 for miss in misses) / 2)) - 1)
    assert 0.004 < model.largest_residual < 0.02
    assert model.trial_spread is None


@pytest.mark.parametrize("seed", range(5))
def test_a_launch_floor_is_a_constant(seed: int) -> None:
    model = fit_cost_model(made_up(1.5e-3, 0, 1, noise=0.02, seed=seed))
    assert [model.seconds(n) for n in (5, 300, 4000)] == pytest.approx([1.5e-3] * 3, rel=0.05)
    assert model.growth == pytest.approx(1, abs=0.06)
    assert model.b_s > 0


def test_a_spread_joins_misses_and_trials() -> None:
    trials = {n: [seconds * 1.1, seconds / 1.1] for n, (seconds,) in made_up(1e-3, 1e-6, 1, trials=1).items()}
    model = fit_cost_model(trials)
    # Two trials a factor of 1.21 apart: their variance is 2 ln(1.1)^2.
    assert model.trial_spread == pytest.approx(1.1 ** math.sqrt(2) - 1)
    assert model.rms_residual == pytest.approx(0, abs=1e-4)
    assert model.spread == pytest.approx(model.trial_spread, rel=1e-4)


def test_too_few_sizes_have_no_model() -> None:
    trials = made_up(1e-3, 1e-6, 1, sizes=(1, 10, 100))
    with pytest.raises(NoModelError, match="4 sizes with a time or more, not 3"):
        fit_cost_model({**trials, 1000: []})
    assert fit_cost_model({**trials, 1000: [2e-3]}).sizes == 4


def test_a_size_of_zero_has_no_model() -> None:
    with pytest.raises(NoModelError, match="size 0 has no logarithm"):
        fit_cost_model({n: [1e-3] for n in (0, 1, 2, 3)})


def test_a_size_outside_is_told_by_how_much() -> None:
    model = fit_cost_model(made_up(1e-3, 1e-6, 1))
    assert [model.beyond(n) for n in (1, 5, 100, 4000, 12_000)] == [5, 1, 1, 1, 3]


def test_the_same_times_give_the_same_model_whatever_their_order() -> None:
    trials = made_up(3e-4, 2e-9, 1.8, noise=0.05)
    assert fit_cost_model(trials) == fit_cost_model(dict(reversed(trials.items())))

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from crossover.compare.intervals import Floats
from crossover.compare.plane import Ints
from crossover.compare.rules import Rule, simplest_rule

POINTS: Ints = np.array([(size, batch) for size in (16, 64, 256, 1024, 4096) for batch in (1, 8, 64, 512)])
SIZE, BATCH = np.log(POINTS).T


@pytest.mark.parametrize(
    ("mean", "exponents", "least"),
    [
        (SIZE - math.log(128), (1.0, 0.0), 128),
        (BATCH - math.log(20), (0.0, 1.0), math.sqrt(8 * 64)),
        (SIZE + BATCH - math.log(3000), (1.0, 1.0), math.sqrt(2048 * 4096)),
        (SIZE + 2 * BATCH - math.log(30_000), (1.0, 2.0), None),
    ],
)
def test_the_simplest_rule_is_found(mean: Floats, exponents: tuple[float, float], least: float | None) -> None:
    fit = simplest_rule(POINTS, mean, np.sign(mean))
    assert fit
    assert (fit.rule.size_exponent, fit.rule.batch_exponent) == exponents
    assert (fit.wrong, fit.points, fit.worst) == (0, 20, 1.0)
    assert (fit.rule.chooses(POINTS) == (mean > 0)).all()
    if least:
        assert fit.rule.least == pytest.approx(least)


def test_a_rule_minimises_the_cost_of_wrong_choices() -> None:
    """Against all thresholds on the size, for points whose side depends on little else."""
    draw, compared = np.random.default_rng(0), 0
    for _ in range(40):
        mean = 0.4 * (SIZE - 5.5) + draw.normal(size=len(POINTS))
        fit = simplest_rule(POINTS, mean, np.sign(mean))
        if fit and (fit.rule.size_exponent, fit.rule.batch_exponent) == (1.0, 0.0) and fit.rule.by_batch is None:
            chosen = [POINTS[:, 0] >= least for least in (1, 32, 128, 512, 2048, 9999)]
            costs = [np.abs(mean[of_rule != (mean > 0)]).sum() for of_rule in chosen]
            assert np.abs(mean[fit.rule.chooses(POINTS) != (mean > 0)]).sum() == pytest.approx(min(costs))
            compared += 1
    assert compared > 5


def test_a_rule_does_not_divide_points_with_equal_products() -> None:
    """Logarithms of equal products, such as 64 x 8^1.5 and 512 x 2^1.5, differ in their last digits."""
    points = np.array([(2**size, 2**batch) for size in range(5, 10) for batch in range(6)])
    draw = np.random.default_rng(130)
    mean = np.log(points.prod(axis=1)) - draw.uniform(4, 9) + draw.normal(0, 0.6, len(points))
    fit = simplest_rule(points, mean, np.sign(mean))
    assert fit
    assert fit.rule.least
    products = points[:, 0] ** fit.rule.size_exponent * points[:, 1] ** fit.rule.batch_exponent
    assert np.abs(products / fit.rule.least - 1).min() > 1e-6


def test_wrong_points_are_counted_with_their_cost() -> None:
    mean = np.where(SIZE > 5, 1.0, -1.0)
    mean[(POINTS == (4096, 512)).all(axis=1)] = -math.log(3)  # against every rule
    mean[(POINTS == (4096, 1)).all(axis=1)] = -0.1
    signs = np.sign(mean)
    signs[np.abs(mean) < 0.5] = 0
    fit = simplest_rule(POINTS, mean, signs)
    assert fit
    assert (fit.wrong, fit.points) == (1, 19)
    assert fit.worst == pytest.approx(3)
    assert fit.held_out_wrong >= 1


def test_a_table_has_a_size_for_each_batch_size() -> None:
    rule = Rule(1.0, 0.0, None, [(1, 100.0), (100, 10.0)])
    points = np.array([(50, 1), (50, 100), (50, 9), (50, 11), (200, 1)])
    assert rule.chooses(points).tolist() == [False, True, False, True, True]
    assert Rule(1.0, 0.0, None, [(1, None), (100, 0)]).chooses(points).tolist() == [False, True, False, True, False]
    from_size = {1: 3000, 8: 30, 64: 3000, 512: 30}
    narrow = [(size, 20) for size in (300, 330, 360)]
    points = np.array([*narrow, *[(2**power, batch) for power in range(4, 13) for batch in from_size]])
    mean = np.array([1.0 if size >= from_size.get(batch, 30) else -1.0 for size, batch in points.tolist()])
    fit = simplest_rule(points, mean, np.sign(mean))
    assert fit
    assert fit.rule.by_batch
    assert [batch for batch, _ in fit.rule.by_batch] == [*from_size]
    assert (fit.rule.chooses(points) == (mean > 0)).all()
    again = Rule(**json.loads(json.dumps(vars(fit.rule), allow_nan=False)))
    assert (again.chooses(points) == (mean > 0)).all()


def test_points_that_refinement_adds_make_no_table() -> None:
    """The sides change where the size is ten batches; each added point has a batch size of its own."""
    generator = np.random.default_rng(0)
    grid = [(size, batch) for size in (16, 64, 256, 1024, 4096) for batch in (1, 5, 23, 108, 512)]
    added = np.exp(generator.uniform((math.log(16), 0), (math.log(4096), math.log(512)), (20, 2))).round().astype(int)
    points = np.array([*grid, *added.tolist()])
    mean = np.log(points[:, 0] / points[:, 1] / 10) + generator.normal(0, 0.1, len(points))
    fit = simplest_rule(points, mean, np.where(np.abs(mean) > 0.3, np.sign(mean), 0))
    assert fit
    assert (fit.rule.size_exponent, fit.rule.batch_exponent, fit.rule.by_batch) == (1.0, -1.0, None)
    assert fit.rule.least == pytest.approx(10, rel=0.3)
    assert (fit.wrong, fit.measured) == (0, 45)
    assert fit.points < 45


def test_one_side_everywhere_needs_no_rule() -> None:
    assert simplest_rule(POINTS, np.ones(20), np.ones(20)) is None


@pytest.mark.parametrize("seed", range(8))
def test_sides_at_random_have_no_rule(seed: int) -> None:
    mean = np.random.default_rng(seed).normal(size=len(POINTS))
    assert simplest_rule(POINTS, mean, np.sign(mean)) is None


def test_a_contender_that_is_faster_below_a_size_only_has_no_rule() -> None:
    added = np.exp(np.random.default_rng(0).uniform((math.log(200), 0), (math.log(450), math.log(512)), (40, 2)))
    points = np.concatenate([POINTS, added.round().astype(int)])
    mean = np.where(points[:, 0] < 300, 0.8, -0.8)
    assert simplest_rule(points, mean, np.sign(mean)) is None

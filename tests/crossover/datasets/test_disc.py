from __future__ import annotations

import math

import numpy as np

from crossover.datasets.disc import make_disc


def test_shape_type_and_normalisation() -> None:
    data = make_disc({"points": 1000, "seed": 0})
    assert data["features"].shape == (1000, 2)
    assert data["features"].dtype == np.float32
    assert data["labels"].dtype == np.int64
    assert abs(data["features"].mean()) < 1e-5
    assert math.isclose(data["features"].std(ddof=1), 1, rel_tol=1e-5)


def test_an_eighth_of_the_points_is_positive() -> None:
    share = make_disc({"points": 400_000, "seed": 1})["labels"].mean()
    assert abs(share - 0.125) < 4 * math.sqrt(0.125 * 0.875 / 400_000)


def test_positives_are_the_points_nearest_the_origin() -> None:
    """The labels follow from the source's formula, applied to the points before their normalisation."""
    points = np.random.default_rng(3).random((500, 2), dtype=np.float32)
    source = np.ceil((-np.sign((points**2).sum(1) - 1 / (2 * math.pi)) + 1) / 2).astype(np.int64)
    assert (make_disc({"points": 500, "seed": 3})["labels"] == source).all()


def test_the_seed_sets_the_points_and_a_single_point_is_enough() -> None:
    first, again, other = (make_disc({"points": 50, "seed": seed})["features"] for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()
    assert np.isfinite(make_disc({"points": 1, "seed": 0})["features"]).all()

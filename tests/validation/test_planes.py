"""A short version of check_planes.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from check_planes import ALIGNED, BAND, CACHE, EQUAL, PlaneCase, plane_rows, truth_of, wrong_share

from crossover.compare.plane import Plane


@pytest.mark.parametrize(("truth", "least_certified"), [(EQUAL, 0.0), (CACHE, 0.7)])
def test_certified_regions_are_right(truth: str, least_certified: float) -> None:
    (found,) = plane_rows(PlaneCase(truth, 3, 0.1), 4, seed=0).to_dict("records")
    assert found["false"] == 0
    assert found["certified"] >= least_certified


@pytest.mark.parametrize("truth", [ALIGNED, BAND])
def test_little_is_certified_where_sizes_between_those_of_the_grid_differ(truth: str) -> None:
    """Nothing in most runs; in few, too few of the points within regions happen to contradict these."""
    (found,) = plane_rows(PlaneCase(truth, 3, 0.1), 4, seed=0).to_dict("records")
    assert found["certified"] < 0.25
    assert found["false"] <= 0.25


def test_the_simulation_finds_a_false_region() -> None:
    points = np.array([(size, batch) for size in (16, 4096) for batch in (1, 512)])
    plane: dict[str, Any] = {"points": points, "mean": np.ones(4), "certainty": np.ones(4), "trials": np.ones(4, int)}
    made = Plane({}, "cuda", signs=np.ones(4), has_intervals=True, **plane)
    draw = np.random.default_rng(0)
    truth = truth_of(CACHE, draw)
    assert 0.1 < wrong_share(made, truth, draw) < 0.9
    assert wrong_share(replace(made, signs=np.array([1.0, -1, 1, -1])), truth, draw) == 0

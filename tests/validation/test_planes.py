"""A short version of check_planes.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from check_planes import ALIGNED, BELOW, CACHE, EQUAL, PlaneCase, plane_rows, truth_of, wrong_share

from crossover.compare.plane import Plane


@pytest.mark.parametrize(("truth", "least_certified"), [(EQUAL, 0.0), (CACHE, 0.7)])
def test_certified_regions_are_right(truth: str, least_certified: float) -> None:
    (found,) = plane_rows(PlaneCase(truth, 3, 0.1), 4, seed=0).to_dict("records")
    assert found["false"] == 0
    assert found["certified"] >= least_certified


def test_nothing_is_certified_where_the_sizes_of_the_grid_are_special() -> None:
    (found,) = plane_rows(PlaneCase(ALIGNED, 3, 0.1), 4, seed=0).to_dict("records")
    assert (found["false"], found["certified"]) == (0, 0)


def test_rules_are_given_where_they_gain_much() -> None:
    (found,) = plane_rows(PlaneCase(CACHE, 8, 0.05), 2, seed=0).to_dict("records")
    assert (found["rule"], found["rule_worse"]) == (1, 0)
    assert 0 < found["rule_errors"] < 0.3
    (found,) = plane_rows(PlaneCase(BELOW, 8, 0.05), 2, seed=0).to_dict("records")
    assert found["rule"] == 0


def test_the_simulation_finds_a_false_region() -> None:
    points = np.array([(size, batch) for size in (16, 4096) for batch in (1, 512)])
    plane: dict[str, Any] = {"points": points, "mean": np.ones(4), "certainty": np.ones(4), "trials": np.ones(4, int)}
    made = Plane({}, "cuda", signs=np.ones(4), has_intervals=True, **plane)
    draw = np.random.default_rng(0)
    truth = truth_of(CACHE, draw)
    assert 0.1 < wrong_share(made, truth, draw) < 0.9
    assert wrong_share(replace(made, signs=np.array([1.0, -1, 1, -1])), truth, draw) == 0

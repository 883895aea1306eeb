from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.compare.plane import Plane, plan_planes, planes_of
from crossover.config.studies import Cell, Refinement

SIZES, BATCH_SIZES = (10, 100, 1000), (1, 10, 100)
GRID = [(size, batch_size) for size in SIZES for batch_size in BATCH_SIZES]


def plane(signs: list[int], points: list[tuple[int, int]] = GRID, **values: Any) -> Plane:
    numbers = np.array(signs, float)
    plain: dict[str, Any] = {"mean": numbers, "certainty": 2 * np.abs(numbers), "trials": np.full(len(signs), 3)}
    return Plane({}, "cuda", np.array(points), signs=numbers, has_intervals=True, **plain | values)


def trials(number: int = 3, faster_from: int = 1000, **values: Any) -> pd.DataFrame:
    """A GPU that is 4 times as fast where size x batch size is at least `faster_from`, else 4 times as slow."""
    rows = []
    for size, batch_size in GRID:
        ratio = 4 if size * batch_size >= faster_from else 1 / 4
        for device in ("cpu", "cuda"):
            cell = Cell("study", "model", "resident", batch_size, "fp32", "eager", size, device, **values)
            times = [1.01**trial * (ratio if device == "cpu" else 1) for trial in range(number)]
            rows += [{**cell.values, "trial": trial + 1, "time": time} for trial, time in enumerate(times)]
    return pd.DataFrame(rows)


def test_a_triangle_belongs_to_the_side_that_is_faster_at_all_corners() -> None:
    made = plane([-1, -1, 0, -1, -1, 0, 1, 1, 1])
    assert made.areas.sum() == pytest.approx(1)
    assert made.share(-1) == pytest.approx(1 / 4)  # one of four squares on logarithmic axes
    assert made.share(1) == 0
    assert plane([1] * 9).share(1) == pytest.approx(1)


def test_points_on_a_line_have_no_area() -> None:
    made = plane([1, 1, 1], [(10, 1), (100, 1), (1000, 1)])
    assert len(made.triangles) == 0
    assert made.contradictions == (0, 0)
    assert made.within() == []
    assert math.isnan(made.share(1))
    assert made.between() == []


def test_points_are_added_between_different_signs_and_nowhere_else() -> None:
    """With |L| = 1 everywhere and an error of 0.1, |L| is twice the error at 0.4 of the way to the other sign."""
    signs = [-1, -1, -1, -1, -1, -1, 1, 1, 1]
    made = plane(signs, certainty=np.full(9, 10.0))
    new = made.between()
    assert {size for size, _ in new} <= {round(100 * 10**0.4), round(100 * 10**0.6)}
    assert len(new) == 3  # a third of nine
    assert {size % 8 for size, _ in made.between(granularity=8)} == {0}
    assert {size for size, _ in made.between(sizes=[10, 300, 1000])} == {300}
    assert plane(signs, certainty=np.full(9, 2.0)).between() == []  # nearer to the other sign, all would be undecided
    assert plane([1] * 9).between() == plane([0] * 9).between() == []


def test_no_point_is_added_towards_a_larger_advantage_or_an_equal_one() -> None:
    """At (100, 10), |L| is 2.5 or 1 and undecided, for lack of trials; elsewhere it is 1."""
    for undecided in (2.5, 1.0):
        signs, mean = [1] * 9, np.ones(9)
        signs[4], mean[4] = 0, undecided
        assert plane(signs, mean=mean, certainty=np.full(9, 10.0)).between() == []


def test_points_within_are_those_of_triangles_whose_corners_favour_a_side() -> None:
    made = plane([1] * 9)
    points = made.within()
    assert len(points) == 2
    assert made.within() == points
    assert not {*points} & {*GRID}
    assert {size % 8 for size, _ in made.within(granularity=8)} == {0}
    assert {size for size, _ in made.within(sizes=SIZES)} <= {*SIZES}
    assert len(plane([0] * 9, mean=np.ones(9)).within()) == 2
    assert plane([1, -1, 1, -1, 1, -1, 1, -1, 1]).within() == []


def test_nothing_is_certified_if_points_contradict_the_first_grid() -> None:
    """One contradiction may be a place that refinement goes round; beside two, their share counts."""
    within = [
        (20, 2),
        (50, 3),
        (200, 20),
        (500, 70),
        (15, 30),
        (60, 40),
        (300, 2),
        (700, 4),
        (90, 4),
        (400, 30),
        (20, 5),
    ]
    for signs, contradictions, certified in [
        ([1] * 11, (0, 11), True),
        ([-1], (1, 1), True),
        ([-1, -1] + [1] * 9, (2, 11), True),  # 18 %
        ([-1, -1, 0] + [1] * 7, (2, 9), False),  # 22 %
    ]:
        made = plane([1] * 9 + signs, GRID + within[: len(signs)])
        assert made.contradictions == contradictions
        assert (made.share(1) > 0) is certified
        assert certified or made.share(-1) == 0
    assert plane([1] * 9).contradictions == (0, 0)
    assert plane([1, 1, 1, 1, 1, 1, -1, -1, -1, -1], [*GRID, (700, 50)]).contradictions == (0, 0)  # between the sides


def test_more_trials_go_where_they_are_expected_to_decide() -> None:
    made = plane([1, 0, 0, 1, 1, 1, 1, 1, 1], certainty=np.array([2, 0.7, 0.2, *[2] * 6]))
    assert made.undecided(8) == [(10, 10)]  # 0.7 x sqrt(8 / 3) is above 1
    assert made.undecided(3) == []


def test_a_plane_has_the_signs_of_its_trials() -> None:
    (made,) = planes_of(trials())
    assert made.points.tolist() == [list(point) for point in GRID]
    assert made.signs.tolist() == [1 if size * batch_size >= 1000 else -1 for size, batch_size in GRID]
    assert made.mean == pytest.approx(made.signs * math.log(4))
    assert made.trials.tolist() == [3] * 9
    (alone,) = planes_of(trials(1))
    assert not alone.has_intervals
    assert alone.signs.tolist() == made.signs.tolist()  # leads of more than 2


@pytest.mark.parametrize(("errors", "sign"), [(2.5, 1), (1.8, 0)])
def test_a_close_point_is_corrected_for_undecided_points_only(errors: float, sign: int) -> None:
    """At a standard error of ln(1.01) x sqrt(2 / 3), t is 2.0 for one point of nine left and 2.9 for all nine."""
    rows = trials()
    close = (rows["size"] == 100) & (rows["batch_size"] == 10)
    lead = 1.01 ** (errors * math.sqrt(2 / 3))
    on_cpu = rows["device"] == "cpu"
    rows.loc[close & on_cpu, "time"] = rows.loc[close & ~on_cpu, "time"].to_numpy() * lead
    (made,) = planes_of(rows)
    assert made.signs[GRID.index((100, 10))] == sign


def test_each_machine_has_a_plane_and_a_cpu_alone_has_none() -> None:
    both = pd.concat([trials(machine=name) for name in ("a", "b")])
    assert [made.series["machine"] for made in planes_of(both)] == ["a", "b"]
    assert not [*planes_of(both[both["device"] == "cpu"])]


def test_a_stage_adds_points_with_their_first_trials_on_both_sides() -> None:
    refinement = Refinement(pairs=("plane",))
    requests = [*plan_planes(trials(), 1, refinement, 8)]
    assert requests
    for request in requests:
        assert {cell.device for cell in request.trials} == {"cpu", "cuda"}
        assert all(numbers == {1, 2, 3} for numbers in request.trials.values())
        assert request.why["decision"] == "add_point"
    assert not [*plan_planes(trials(), 5, refinement, 8)]  # after two bisections, then 8 and 12 trials


def test_a_later_stage_adds_trials_where_the_side_is_undecided() -> None:
    rows = trials()
    is_tie = (rows["size"] == 10) & (rows["batch_size"] == 100) & (rows["device"] == "cpu")
    rows.loc[is_tie, "time"] = [1.1, 1.4, 1.9]
    (request,) = (one for one in plan_planes(rows, 3, Refinement(), 8) if one.why["decision"] == "add_trials")
    assert (request.why["size"], request.why["batch_size"]) == (10, 100)
    assert all(numbers == {*range(1, 9)} for numbers in request.trials.values())

from __future__ import annotations

import pytest

from crossover.statistics.interpolation import Interpolation


def test_a_known_point_is_itself_to_the_last_digit() -> None:
    """exp(log(x)) is not: 999.9999999999998 for 1000."""
    sizes = (9.0, 10.0, 752.0, 1000.0)
    same = Interpolation(sizes, sizes)
    assert [same(size) for size in sizes] == list(sizes)


def test_between_points_it_follows_a_power_law() -> None:
    cube = Interpolation([2, 8], [8, 512])
    assert cube(4) == pytest.approx(64)
    assert cube(None) is None
    assert Interpolation([], [])(4.0) is None

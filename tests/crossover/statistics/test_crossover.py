from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossover.statistics.crossover import STATUSES, Crossover, estimate_crossover

Times = Mapping[float, float | None]


def found(cpu: Times, gpu: Times) -> Crossover:
    rows = [
        {"size": size, "side": side, "trial": 1, "step_time_s": math.nan if time is None else time}
        for side, times in (("cpu", cpu), ("gpu", gpu))
        for size, time in times.items()
    ]
    return estimate_crossover(pd.DataFrame(rows, columns=["size", "side", "trial", "step_time_s"]), "cpu", "gpu")


SIZES = (1, 2, 4, 8)


def ratio(*ratios: float | None) -> Crossover:
    """A GPU of 1 s beside a CPU that takes these times at sizes 1, 2, 4, 8."""
    return found(dict(zip(SIZES, ratios, strict=True)), dict.fromkeys(SIZES, 1.0))


def test_a_root_by_hand() -> None:
    """CPU 1 s at 100 and 4 s at 400, GPU 2 s: the time doubles halfway, in logarithms, at 200."""
    result = found({100: 1.0, 400: 4.0}, {100: 2.0, 400: 2.0})
    assert result.status == "bracketed"
    assert result.size == pytest.approx(200)
    assert result.bracket == (100, 400)
    assert result.roots == (pytest.approx(200),)
    assert (result.low, result.high) == (None, None)


@given(
    exponent=st.floats(0.3, 3),
    crossing=st.floats(1.01, 1000),
    scale=st.floats(1e-7, 1e3),
)
def test_power_laws_cross_where_algebra_says(exponent: float, crossing: float, scale: float) -> None:
    sizes = [2.0**k for k in range(11)]
    result = found({n: scale * (n / crossing) ** exponent for n in sizes}, dict.fromkeys(sizes, scale))
    assert result.status == "bracketed"
    assert result.size == pytest.approx(crossing, rel=1e-6)
    assert result.bracket is not None
    assert result.bracket[0] <= result.size <= result.bracket[1]


@pytest.mark.parametrize(
    ("ratios", "status"),
    [
        ((0.5, 0.8, 2, 4), "bracketed"),
        ((2, 3, 4, 5), "below_range"),
        ((0.1, 0.2, 0.3, 0.9), "above_range"),
        ((4, 2, 0.8, 0.5), "reversed"),
        ((0.5, 2, 0.5, 2), "multiple"),
        ((1, 1, 1, 1), "undecided"),
        ((1, 2, 3, 4), "edge_tie"),
        ((0.2, 0.4, 0.8, 1), "edge_tie"),
        ((0.5, None, 2, 4), "incomplete"),
        ((None, 2, 3, 4), "incomplete"),
        ((0.1, 0.2, 0.3, None), "incomplete"),
        ((None, None, None, None), "incomplete"),
        ((0.5, 2, 3, None), "bracketed"),
        ((0.2, 0.4, 1, None), "incomplete"),
        ((1, 1, 1, None), "incomplete"),
        ((2, 3, 4, None), "below_range"),
        ((0.1, None, 0.3, 0.9), "above_range"),
        ((None, 0.2, 0.3, 0.9), "above_range"),
    ],
)
def test_statuses(ratios: tuple[float | None, ...], status: str) -> None:
    result = ratio(*ratios)
    assert result.status == status
    assert result.status in STATUSES
    assert (result.size is not None) == (status in ("bracketed", "reversed"))


def test_all_roots_of_several_crossings_are_given() -> None:
    """In the middle gap, flat at both ends, halfway; in the outer ones -2 u^2 + 4 u - 1 = 0, by PCHIP's end slope."""
    result = ratio(0.5, 2, 0.5, 2)
    u = 1 - math.sqrt(0.5)
    assert result.roots == (pytest.approx(2**u), pytest.approx(math.sqrt(8)), pytest.approx(8 * 2**-u))
    assert result.size is None


def test_a_tie_inside_the_range_is_the_root() -> None:
    result = ratio(0.5, 1, 2, 4)
    assert result.status == "bracketed"
    assert result.size == pytest.approx(2)


def test_a_tie_that_is_only_touched_is_no_crossing() -> None:
    assert ratio(0.5, 1, 0.5, 0.2).status == "above_range"


def test_without_a_contender_there_is_no_accelerator() -> None:
    assert found({1: 1.0, 2: 2.0}, {}).status == "no_accelerator"


@pytest.mark.parametrize("size", [math.nan, math.inf, 0.0, -1.0])
def test_a_measurement_without_a_proper_size_is_refused(size: float) -> None:
    with pytest.raises(ValueError, match="every measurement needs its size, a finite number above 0"):
        found({size: 1.0}, {1: 1.0})


def test_trials_are_averaged_on_the_log_scale() -> None:
    rows = [(100, "cpu", 0.5), (100, "cpu", 2.0), (400, "cpu", 4.0), (100, "gpu", 2.0), (400, "gpu", 2.0)]
    table = pd.DataFrame(rows, columns=["size", "side", "step_time_s"]).assign(trial=1)
    assert estimate_crossover(table, "cpu", "gpu").size == pytest.approx(200)


@given(st.permutations(range(8)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    cpu, gpu = {1: 0.5, 2: 0.8, 4: 2.0, 8: 4.0}, dict.fromkeys(SIZES, 1.0)
    rows = [
        {"size": n, "side": side, "trial": 1, "step_time_s": times[n]}
        for side, times in (("cpu", cpu), ("gpu", gpu))
        for n in SIZES
    ]
    shuffled = estimate_crossover(pd.DataFrame([rows[i] for i in order]), "cpu", "gpu")
    assert shuffled == found(cpu, gpu)

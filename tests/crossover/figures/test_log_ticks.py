from __future__ import annotations

import pytest
from crossover.figures.log_ticks import LogTicks, reach_ticks_beside_1, tick_values
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0.9, 120, 8, [1, 2, 5, 10, 20, 50, 100]),
        (0.9, 1200, 8, [1, 3, 10, 30, 100, 300, 1000]),
        (0.9, 1.2e5, 8, [1, 10, 100, 1e3, 1e4, 1e5]),
        (0.9, 1.2e12, 5, [1, 1e3, 1e6, 1e9, 1e12]),
        (1.5, 6, 8, [2, 3, 4, 5]),  # a span of less than a decade
        (1.5, 4.5, 8, [2, 3, 4]),
        (2.1e-6, 6e-6, 8, [3e-6, 4e-6, 5e-6]),
        (1.5, 6, 2, [2, 5]),
        (1.01, 1.9, 5, [1.2, 1.4, 1.6, 1.8]),  # no multiple at all
        (520, 590, 5, [520, 540, 560, 580]),
        (5, 5, 8, []),
        (0, 5, 8, []),
    ],
)
def test_a_few_round_numbers_are_labelled(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert LogTicks(most).tick_values(low, high) == pytest.approx(ticks)


def test_an_axis_has_these_ticks_for_whatever_is_in_view() -> None:
    axes = Figure().subplots()
    axes.set_yscale("log")
    tick_values(axes.yaxis, StrMethodFormatter("{x:g}"))
    for limits, ticks in (((0.9, 120), [1, 2, 5, 10, 20, 50, 100]), ((1.5, 6), [2, 3, 4, 5])):
        axes.set_ylim(*limits)
        assert axes.get_yticks() == pytest.approx(ticks)
        assert [label.get_text() for label in axes.get_yticklabels()] == [f"{tick:g}" for tick in ticks]
    assert len(axes.yaxis.get_minorticklocs()) == 0


@pytest.mark.parametrize("low", [0.013, 0.97, 3.3, 8.9])
@pytest.mark.parametrize("factor", [1.02, 1.3, 2, 4, 9, 30, 300, 1e4, 1e9])
@pytest.mark.parametrize("most", [2, 5, 8])
def test_an_axis_never_has_too_many_ticks_or_too_few(low: float, factor: float, most: int) -> None:
    ticks = LogTicks(most).tick_values(low, low * factor)
    assert 2 <= len(ticks) <= most
    assert low <= min(ticks) <= max(ticks) <= low * factor


def test_ratios_beside_1_have_a_tick_on_the_side_where_they_lie() -> None:
    figure = Figure()
    (axes,) = figure.subplots(1, 1, squeeze=False)[0]
    axes.set_yscale("log")
    axes.plot([1, 2], [0.9, 1.81])
    reach_ticks_beside_1([axes])
    tick_values(axes.yaxis, StrMethodFormatter("{x:g}"))
    assert {0.5, 1, 2} <= set(axes.get_yticks())

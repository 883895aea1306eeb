"""Energy and money of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from crossover.figures.energy import NO_COST, cell_costs, plot_energy
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


@pytest.fixture
def view(row: Row, view_of: Views) -> StudyView:
    """The GPU takes 0.5 J and 1 ms a step, the CPU 10 ms and an unknown energy; 3.6 and 0.72 an hour."""
    rows = [row(size=size, device="cuda", energy_per_step_j=0.5, step_time_s=1e-3) for size in (2, 4)]
    rows += [row(size=size, step_time_s=1e-2) for size in (2, 4)]
    return replace(view_of(rows), price_per_hour={"cpu": 0.72, "cuda": 3.6}, currency="EUR")


def test_money_is_of_a_million_steps(view: StudyView) -> None:
    """3.6 an hour is 0.001 a second, so a million steps of 1 ms, 1000 s, cost 1; the CPU's take 10,000 s at 0.0002."""
    costs = cell_costs(view)
    money = costs[costs["cost"] == "money"].groupby("device")["mean"].first()
    assert dict(money) == {"cpu": pytest.approx(2), "cuda": pytest.approx(1)}


def test_a_panel_for_each_known_cost(view: StudyView) -> None:
    energy, money = plot_energy(view).axes
    assert [axes.get_title(loc="left") for axes in (energy, money)] == ["energy", "money"]
    assert [text.get_text() for text in energy.texts if text.get_text()] == ["CPU: not known", "GPU"]
    assert (energy.get_ylabel(), money.get_ylabel()) == ("energy of a step", "EUR for\na million steps")
    (line,) = [line for line in energy.lines if len(list(line.get_xdata()))]
    assert list(line.get_ydata()) == pytest.approx([0.5, 0.5])


def test_without_prices_there_is_energy_alone(view: StudyView) -> None:
    (axes,) = plot_energy(replace(view, price_per_hour=None)).axes
    assert axes.get_title(loc="left") == "energy"


def test_without_either_the_figure_says_why_it_is_empty(row: Row, view_of: Views) -> None:
    figure = plot_energy(view_of([row(size=2), row(size=4)]))
    assert [text.get_text() for text in figure.texts] == ["A title", NO_COST]

from __future__ import annotations

import pytest
from matplotlib import pyplot as plt

from crossover.figures.panels import keep_in_view, spaced_out, tick_counts

VALUES = [1.0, 8.0, 10.0, 100.0]
"""8 and 10 are a factor of 1.25 apart, less than a tenth of the axis, a factor of 1.58."""


def test_of_two_close_places_the_first_has_a_label() -> None:
    assert spaced_out(VALUES, 0.1) == [1, 8, 100]


def test_a_place_that_comes_last_has_what_room_the_others_leave() -> None:
    assert spaced_out(VALUES, 0.1, {8.0}) == [1, 10, 100]
    assert spaced_out([1.0, 10.0, 30.0, 100.0], 0.1, {30.0}) == [1, 10, 30, 100]
    assert spaced_out([9.0, *VALUES[2:]], 0.1, {9.0}) == [10, 100]


def test_a_size_that_refinement_added_has_no_tick_beside_one_of_the_first_grid() -> None:
    axes = plt.figure().add_subplot(xscale="log")
    axes.plot(VALUES, VALUES)
    tick_counts(axes, {value: f"{value:g}" for value in VALUES}, {8.0})
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]
    plt.close("all")


def test_an_interval_of_many_decades_runs_out_of_the_panel() -> None:
    axes = plt.figure().add_subplot(yscale="log")
    axes.fill_between([1, 2], [1e-9, 0.9], [1e9, 1.1])
    keep_in_view(axes, [0.5, 3.0])
    assert axes.get_ylim() == pytest.approx((0.25, 6))
    plt.close("all")


def test_intervals_near_their_points_are_whole() -> None:
    axes = plt.figure().add_subplot(yscale="log")
    axes.fill_between([1, 2], [0.9, 0.9], [1.1, 1.1])
    limits = axes.get_ylim()
    keep_in_view(axes, [1.0])
    assert axes.get_ylim() == limits
    plt.close("all")

"""Marks of cells that did not end well."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10

import pandas as pd
import pytest
from crossover.figures.status_marks import MARK, StatusMark, draw_status_marks, make_room, status_marks
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from crossover.figures.style import PUBLISHED_COLOUR


@pytest.fixture
def axes() -> Iterator[Axes]:
    """A log-log panel from 1 to 1000 on both axes."""
    _, found = plt.subplots()
    found.set(xscale="log", yscale="log", xlim=(1, 1000), ylim=(1, 1000))
    yield found
    plt.close("all")


def texts(axes: Axes) -> list[tuple[str, float]]:
    return [(text.get_text(), text.xy[0]) for text in axes.texts]  # type: ignore[attr-defined]


def test_a_cell_that_is_not_ok_has_a_mark_with_its_words() -> None:
    columns = {"x": [1.0, 2.0, 4.0], "status": ["ok", "oom", "timeout"], "step_time_s": [1.0, None, 3.0]}
    cells = pd.DataFrame({**columns, "trials": [3, 0, 1], "trials_not_ok": [0, 3, 2]})
    assert status_marks(cells, "red", "GPU") == [
        StatusMark(2, "GPU oom", "red"),
        StatusMark(4, "GPU timeout in 2 of 3 trials", "red"),
    ]
    assert status_marks(cells, "red")[0].words == "oom"


def test_each_size_has_a_cross_and_each_way_to_end_is_named_once(axes: Axes) -> None:
    draw_status_marks(axes, [StatusMark(x, "oom", "red") for x in (100, 1000)])
    assert texts(axes) == [(MARK, 100), (MARK, 1000), ("oom", 100)]
    assert axes.texts[-1].get_horizontalalignment() == "right"  # there is room to the left of it


def test_at_the_left_edge_the_word_stands_behind_the_last_cross(axes: Axes) -> None:
    draw_status_marks(axes, [StatusMark(x, "oom", "red") for x in (1, 10)])
    assert texts(axes)[-1] == ("oom", 10)
    assert axes.texts[-1].get_horizontalalignment() == "left"


def test_two_ways_to_end_at_one_size_have_rows_of_their_own(axes: Axes) -> None:
    draw_status_marks(axes, [StatusMark(10, "oom", "red"), StatusMark(10, "timeout", "blue")])
    heights = {text.get_text(): text.xyann[1] for text in axes.texts}  # type: ignore[attr-defined]
    assert heights["timeout"] - heights["oom"] == 12


def test_too_many_colours_share_a_row_in_grey(axes: Axes) -> None:
    draw_status_marks(axes, [StatusMark(10.0 + n, "oom", colour) for n, colour in enumerate("rgbcm")])
    assert len([text for text in axes.texts if text.get_text() == "oom"]) == 1
    assert {text.get_color() for text in axes.texts} == {PUBLISHED_COLOUR}


def test_the_points_keep_their_place_above_the_marks(axes: Axes) -> None:
    """One row needs 9 + 12 - 6 = 15 points: of the new height in decades, what lies below 1 is as large a share."""
    make_room(axes, [])
    assert axes.get_ylim() == (1, 1000)
    height_pt = axes.get_window_extent().height / axes.figure.dpi * 72
    make_room(axes, [StatusMark(10, "oom", "red")])
    low, high = axes.get_ylim()
    assert high == 1000
    assert -log10(low) / (3 - log10(low)) == pytest.approx(15 / height_pt)

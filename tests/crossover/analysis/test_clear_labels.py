"""Labels in a panel of 400 by 300 points, of which each has 100 by 100 units."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from crossover.analysis.clear_labels import Label, write_clear

POINTS = ((10.0, 50.0), (90.0, 50.0))


@pytest.fixture
def axes() -> Iterator[Axes]:
    figure = plt.figure(figsize=(400 / 72, 300 / 72))
    found = figure.add_axes((0, 0, 1, 1))
    found.set(xlim=(0, 100), ylim=(0, 100))
    yield found
    plt.close(figure)


def written(axes: Axes, *texts: str) -> list[Annotation]:
    """The labels of the line through POINTS, which is drawn as well."""
    axes.plot(*zip(*POINTS, strict=True))
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    write_clear(axes, [Label(text, POINTS, "black") for text in texts])
    return [text for text in axes.texts if isinstance(text, Annotation)]


def struck(axes: Axes, label: Annotation) -> bool:
    paths = [line.get_transform().transform_path(line.get_path()) for line in axes.lines]
    return any(path.intersects_bbox(label.get_window_extent(), filled=False) for path in paths)


def test_where_nothing_is_in_the_way_it_stands_over_the_first_point(axes: Axes) -> None:
    (label,) = written(axes, "a line")
    assert (label.xy, label.get_va(), label.get_ha()) == (POINTS[0], "bottom", "left")
    assert not struck(axes, label)


def test_it_stands_below_the_point_where_a_line_runs_over_it(axes: Axes) -> None:
    axes.plot([0, 100], [54, 54])
    (label,) = written(axes, "a line")
    assert (label.xy, label.get_va()) == (POINTS[0], "top")
    assert not struck(axes, label)


def test_it_stands_at_another_point_where_lines_run_on_both_sides_of_the_first(axes: Axes) -> None:
    axes.plot([0, 50], [54, 54])
    axes.plot([0, 50], [46, 46])
    (label,) = written(axes, "a line")
    assert label.xy == POINTS[1]
    assert not struck(axes, label)
    assert axes.bbox.x0 <= label.get_window_extent().x0 <= label.get_window_extent().x1 <= axes.bbox.x1


def test_labels_of_one_place_keep_clear_of_each_other(axes: Axes) -> None:
    first, second = written(axes, "a line", "another line")
    assert not first.get_window_extent().overlaps(second.get_window_extent())


def test_where_no_place_is_clear_it_stays_in_the_panel_and_over_the_lines(axes: Axes) -> None:
    for height in range(0, 100, 2):
        axes.plot([0, 100], [height, height])
    (label,) = written(axes, "a line")
    assert axes.bbox.contains(*label.get_window_extent().min)
    assert axes.bbox.contains(*label.get_window_extent().max)
    assert label.get_zorder() > max(line.get_zorder() for line in axes.lines)

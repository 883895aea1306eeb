from __future__ import annotations

from collections.abc import Iterator

import pytest
from crossover.figures.curves import Tag
from crossover.figures.line_ends import write_ends
from matplotlib import pyplot as plt
from matplotlib.axes import Axes


@pytest.fixture
def axes() -> Iterator[Axes]:
    yield plt.figure().add_axes((0, 0, 0.8, 1), yscale="log", xlim=(0, 1), ylim=(0.1, 10))
    plt.close("all")


def end(text: str, y: float) -> Tag:
    return Tag(text, "black", (1.0, y))


def test_words_far_apart_stand_at_their_points(axes: Axes) -> None:
    write_ends(axes, [end("high\nname", 5.0), end("low\nname", 0.2)])
    for words, y in zip(axes.texts, (5.0, 0.2), strict=True):
        box = words.get_window_extent()
        assert (box.y0 + box.y1) / 2 == pytest.approx(axes.transData.transform((1, y))[1], abs=1)


@pytest.mark.parametrize("ys", [(1.0, 1.0), (1.05, 1.0), (1.0, 1.05)])
def test_words_do_not_cover_each_other_and_keep_their_order(axes: Axes, ys: tuple[float, float]) -> None:
    write_ends(axes, [end("first\nname", ys[0]), end("second\nname", ys[1])])
    first, second = (words.get_window_extent() for words in axes.texts)
    assert not first.overlaps(second)
    assert (first.y0 > second.y0) == (ys[0] > ys[1])

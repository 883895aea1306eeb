from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from crossover.figures.free_places import write_beside
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

X, LEVEL = np.array([0.02, 0.5, 0.9]), np.array([0.5, 0.5, 0.5])


@pytest.fixture
def axes() -> Iterator[Axes]:
    panel = plt.figure().add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
    panel.plot(X, LEVEL)
    yield panel
    plt.close("all")


def placed(axes: Axes) -> tuple[tuple[float, float], str, str]:
    """The point that the last words belong to, and their alignment."""
    words = axes.texts[-1]
    return words.xy, words.get_ha(), words.get_va()  # type: ignore[attr-defined]


def test_the_first_point_has_the_words_above_it_where_all_is_free(axes: Axes) -> None:
    write_beside(axes, "words", X, LEVEL, "black")
    assert placed(axes) == ((0.02, 0.5), "left", "bottom")


def test_a_line_above_has_them_below(axes: Axes) -> None:
    axes.plot([0, 1], [0.53, 0.53])
    write_beside(axes, "words", X, LEVEL, "black")
    assert placed(axes) == ((0.02, 0.5), "left", "top")


def test_words_and_dots_are_not_covered_either(axes: Axes) -> None:
    axes.scatter([0.03], [0.53])
    axes.text(0.02, 0.47, "others", va="center")
    write_beside(axes, "words", X, LEVEL, "black")
    assert placed(axes)[0] == (0.5, 0.5)


def test_they_stay_in_the_panel(axes: Axes) -> None:
    axes.set_ylim(0.5, 1)
    write_beside(axes, "w" * 30, X[2:], LEVEL[2:], "black")
    assert placed(axes) == ((0.9, 0.5), "right", "bottom")


def test_where_nothing_is_free_the_least_is_covered(axes: Axes) -> None:
    for height in np.linspace(0.4, 0.6, 21):
        axes.plot([0, 0.8], [height, height])
    write_beside(axes, "words", X, LEVEL, "black")
    assert placed(axes)[0] == (0.9, 0.5)

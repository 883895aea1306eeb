from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crossover.figures.curves import draw_band, looks_of, spread
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection

from crossover.figures.style import DEVICE_COLOURS

Row = Callable[..., dict[str, Any]]


def test_labels_that_have_room_stay_where_they_are() -> None:
    assert spread([0.8, 0.2], [0.1, 0.1]) == [0.8, 0.2]


def test_labels_upon_one_another_part_around_their_middle() -> None:
    assert spread([0.5, 0.5], [0.1, 0.1]) == pytest.approx([0.45, 0.55])
    assert spread([0.0, 0.0], [0.1, 0.1]) == pytest.approx([0.05, 0.15])


def test_many_labels_never_overlap_and_keep_their_order() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        wanted, heights = random.random(12).tolist(), random.uniform(0.02, 0.1, 12).tolist()
        places = spread(wanted, heights)
        order = np.argsort(wanted, kind="stable")
        low = np.array([places[i] - heights[i] / 2 for i in order])
        high = np.array([places[i] + heights[i] / 2 for i in order])
        assert (low[1:] >= high[:-1] - 1e-9).all()
        if sum(heights) <= 1:
            assert low[0] >= -1e-9
            assert high[-1] <= 1 + 1e-9


def test_a_colour_always_means_the_same(row: Row) -> None:
    combinations = [("fp32", "plain"), ("fp32", "channels_last"), ("tf32", "plain"), ("tf32", "channels_last")]
    cells = [row(precision=precision, variant=variant) for precision, variant in combinations]
    looks = looks_of(pd.DataFrame(cells), ["precision", "variant", "execution"])
    drawn = [looks.of(cell) for cell in cells]
    assert len(set(drawn)) == 4
    assert drawn[0].colour == drawn[1].colour != drawn[2].colour == drawn[3].colour
    assert drawn[0].dashes == drawn[2].dashes != drawn[1].dashes == drawn[3].dashes


def test_a_single_line_has_its_devices_colour(row: Row) -> None:
    looks = looks_of(pd.DataFrame([row(device="cpu"), row(device="cuda")]), ["precision"])
    assert looks.of(row(device="cuda")).colour == DEVICE_COLOURS["cuda"]


def test_a_band_breaks_where_a_point_has_no_interval_and_one_alone_is_a_bar() -> None:
    axes = plt.figure().add_subplot()
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    middle = np.array([1.0, 1.0, np.nan, 1.0, np.nan])
    draw_band(axes, x, middle - 0.5, middle + 0.5, "black", 0.2)
    band, bars = axes.collections
    assert isinstance(band, PolyCollection)
    drawn = [path.vertices[:, 0] for path in band.get_paths()]  # type: ignore[index]
    assert max(ends.max() for ends in drawn if np.ptp(ends) > 0) == 2
    assert isinstance(bars, LineCollection)
    assert [segment.tolist() for segment in bars.get_segments()] == [[[4, 0.5], [4, 1.5]]]
    plt.close("all")

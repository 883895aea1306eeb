"""Ticks fit and are round numbers."""

from __future__ import annotations

import pytest
from matplotlib import pyplot as plt

from crossover.figures.style import log_ticks, spaced_out, worded


@pytest.mark.parametrize(
    ("places", "last", "kept"),
    [
        ([1, 10, 100], (), [1, 10, 100]),
        # Words of twenty letters need more space.
        ([10**n for n in range(20, 26)], (), [10**20, 10**22, 10**24]),
        # Of two that are close, the first one has a tick, or the one that refinement did not add.
        ([1, 99, 100], (), [1, 99]),
        ([1, 99, 100], (99,), [1, 100]),
        ([], (), []),
    ],
)
def test_size_ticks_have_room(places: list[int], last: tuple[int, ...], kept: list[int]) -> None:
    assert spaced_out({float(place): str(place) for place in places}, last) == list(map(float, kept))


@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e9), (3, 4), (0.97, 1.04), (1e-6, 3e-3)])
def test_log_axes_have_some_ticks_and_not_many(low: float, high: float) -> None:
    axes = plt.figure().add_subplot(yscale="log", ylim=(low, high))
    log_ticks(axes.yaxis, worded("{:g}".format))

    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    plt.close("all")
    assert 2 <= len(ticks) <= 10

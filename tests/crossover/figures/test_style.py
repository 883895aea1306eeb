"""Tick labels fit and are round numbers."""

from __future__ import annotations

import pytest

from crossover.figures.style import spaced_out


@pytest.mark.parametrize(
    ("places", "last", "kept"),
    [
        ([1, 10, 100], (), [1, 10, 100]),
        # Words of twenty letters need more space.
        ([10**n for n in range(20, 26)], (), [10**20, 10**22, 10**24]),
        # Of two close sizes, the first gets the tick, or the one that refinement did not add.
        ([1, 99, 100], (), [1, 99]),
        ([1, 99, 100], (99,), [1, 100]),
        ([], (), []),
    ],
)
def test_size_ticks_have_room(places: list[int], last: tuple[int, ...], kept: list[int]) -> None:
    assert spaced_out({float(x): str(x) for x in places}, last) == list(map(float, kept))

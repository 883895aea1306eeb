from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from crossover.measurement.memory.batch_search import CONFIRMATIONS, find_largest

Tries = list[tuple[int, bool]]


def search(fits: Callable[[int], bool], start: int, limit: int | None) -> tuple[int | None, Tries]:
    """The largest size, and the tries in order."""
    tries: Tries = []

    def noted(size: int) -> bool:
        tries.append((size, fits(size)))
        return tries[-1][1]

    return find_largest(noted, start, limit), tries


def most_tries(size: int) -> int:
    """Doubling, bisection and confirmation; then steps down and bisection up, each size confirmed."""
    bits = math.ceil(math.log2(size)) + 1
    return 2 * bits + CONFIRMATIONS + 2 * bits * (1 + CONFIRMATIONS)


@pytest.mark.parametrize("start", [1, 2, 3, 8, 40, 64])
@pytest.mark.parametrize("limit", [1, 7, 63, 64, 100])
def test_every_threshold_is_found(start: int, limit: int) -> None:
    for threshold in range(limit + 10):
        largest, tries = search(lambda size, most=threshold: size <= most, start, limit)
        assert largest == (min(threshold, limit) or None)
        assert threshold >= limit or (threshold + 1, False) in tries


@pytest.mark.parametrize(
    ("most", "start", "limit", "sizes"),
    [
        (5, 2, 100, [2, 4, 8, 6, 5, 5, 5]),
        (1000, 4, 100, [4, 8, 16, 32, 64, 100, 100, 100]),
        (0, 8, 100, [8, 4, 2, 1]),
    ],
)
def test_whole_searches_by_hand(most: int, start: int, limit: int, sizes: list[int]) -> None:
    _, tries = search(lambda size: size <= most, start, limit)
    assert [size for size, _ in tries] == sizes


def test_a_failed_confirmation_sends_the_search_down() -> None:
    """Sizes from 60 to 70 fit the first time only."""
    seen: Counter[int] = Counter()

    def fits(size: int) -> bool:
        seen[size] += 1
        return size < 60 or (size <= 70 and seen[size] == 1)

    largest, tries = search(fits, 1, 1000)
    assert largest == 59
    assert Counter(tries)[59, True] == 3


def test_a_size_that_never_fits_twice_ends_in_nothing() -> None:
    seen: Counter[int] = Counter()

    def fits(size: int) -> bool:
        seen[size] += 1
        return seen[size] == 1 and size <= 50_000

    largest, tries = search(fits, 1, None)
    assert largest is None
    assert len(tries) <= most_tries(50_000)


def test_without_a_limit_the_number_of_tries_is_logarithmic() -> None:
    for power in range(1, 40):
        largest, tries = search(lambda size, most=3**power: size <= most, 1, None)
        assert largest == 3**power
        assert len(tries) <= 2 * (math.ceil(power * math.log2(3)) + 1) + CONFIRMATIONS


def test_blurred_thresholds_end_at_a_size_that_held() -> None:
    """Between 900 and 1100 a size fits by chance; the result fitted three times in a row, after few tries."""
    for seed in range(300):
        chance = random.Random(seed)
        largest, tries = search(lambda size, chance=chance: chance.random() < (1100 - size) / 200, 16, 1 << 20)
        assert largest is not None
        assert 850 < largest < 1100
        assert min(size for size, fitted in tries if not fitted) == largest + 1
        assert Counter(tries)[largest, True] >= 3
        assert len(tries) <= most_tries(2048)

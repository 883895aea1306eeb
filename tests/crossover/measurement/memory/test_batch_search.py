from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from crossover.measurement.memory.batch_search import Search, find_largest


@pytest.mark.parametrize("start", [1, 2, 3, 8, 40, 64])
@pytest.mark.parametrize("limit", [1, 7, 63, 64, 100])
def test_every_threshold_is_found(start: int, limit: int) -> None:
    for threshold in range(limit + 10):
        search = find_largest(lambda size, most=threshold: size <= most, start, limit)
        sizes = [size for size in range(1, limit + 1) if size <= threshold]
        assert search.largest == max(sizes, default=None)
        assert search.smallest_failing == (threshold + 1 if threshold < limit else None)


@pytest.mark.parametrize("granularity", [2, 8, 10])
def test_granularity_leaves_only_its_multiples(granularity: int) -> None:
    for threshold in range(120):
        search = find_largest(lambda size, most=threshold: size <= most, 16, 100, granularity=granularity)
        sizes = [size for size in range(granularity, 101, granularity) if size <= threshold]
        assert search.largest == max(sizes, default=None)
        assert all(size % granularity == 0 and size <= 100 for size, _ in search.tries)


def test_without_a_limit_doubling_ends_at_the_first_failure() -> None:
    search = find_largest(lambda size: size <= 1000, 4, None)
    assert (search.largest, search.smallest_failing) == (1000, 1001)
    assert [size for size, _ in search.tries[:9]] == [4, 8, 16, 32, 64, 128, 256, 512, 1024]


def test_the_whole_search_by_hand() -> None:
    search = find_largest(lambda size: size <= 5, 2, 100)
    tries = ((2, True), (4, True), (8, False), (6, False), (5, True), (5, True), (5, True))
    assert search == Search(5, 6, tries)


def test_the_winner_is_confirmed_as_often_as_asked() -> None:
    for confirmations in range(4):
        search = find_largest(lambda size: size <= 37, 1, 1000, confirmations)
        assert Counter(search.tries)[37, True] == 1 + confirmations


def test_everything_up_to_the_limit_fits() -> None:
    search = find_largest(lambda _: True, 4, 100)
    sizes = [size for size, _ in search.tries]
    assert (search.largest, search.smallest_failing) == (100, None)
    assert sizes == [4, 8, 16, 32, 64, 100, 100, 100]


def test_nothing_fits() -> None:
    search = find_largest(lambda _: False, 8, 100)
    assert search == Search(None, 1, ((8, False), (4, False), (2, False), (1, False)))


def test_a_failed_confirmation_sends_the_search_down() -> None:
    """Sizes from 60 to 70 fit the first time only."""
    seen: Counter[int] = Counter()

    def fits(size: int) -> bool:
        seen[size] += 1
        return size < 60 or (size <= 70 and seen[size] == 1)

    search = find_largest(fits, 1, 1000)
    assert (search.largest, search.smallest_failing) == (59, 60)
    assert Counter(search.tries)[59, True] == 3


def test_a_size_that_never_fits_twice_ends_in_nothing() -> None:
    seen: Counter[int] = Counter()

    def fits(size: int) -> bool:
        seen[size] += 1
        return seen[size] == 1 and size <= 50_000

    search = find_largest(fits, 1, None)
    assert (search.largest, search.smallest_failing) == (None, 1)
    assert len(search.tries) <= most_tries(50_000)


def most_tries(size: int, confirmations: int = 2) -> int:
    """Doubling, bisection and confirmation; then steps down and bisection up, each size confirmed."""
    bits = math.ceil(math.log2(size)) + 1
    return 2 * bits + confirmations + 2 * bits * (1 + confirmations)


def test_the_number_of_tries_is_logarithmic() -> None:
    for power in range(1, 40):
        search = find_largest(lambda size, most=3**power: size <= most, 1, None)
        assert search.largest == 3**power
        assert len(search.tries) <= 2 * (math.ceil(power * math.log2(3)) + 1) + 2


def test_blurred_thresholds_end_at_a_size_that_held() -> None:
    """Between 900 and 1100 a size fits by chance; whatever comes out fitted three times running, and soon."""
    for seed in range(300):
        chance = random.Random(seed)

        def fits(size: int, chance: random.Random = chance) -> bool:
            return chance.random() < (1100 - size) / 200

        search = find_largest(fits, 16, 1 << 20)
        assert search.largest is not None
        assert 850 < search.largest < 1100
        assert search.smallest_failing == search.largest + 1
        assert Counter(search.tries)[search.largest, True] >= 3
        assert (search.largest, False) not in search.tries
        assert len(search.tries) <= most_tries(2048)


@pytest.mark.parametrize(
    ("start", "limit", "confirmations", "granularity"), [(0, 10, 2, 1), (1, 0, 2, 1), (1, 10, -1, 1), (1, 7, 2, 8)]
)
def test_no_size_to_try_is_an_error(start: int, limit: int, confirmations: int, granularity: int) -> None:
    with pytest.raises(ValueError, match="no size to try"):
        find_largest(lambda _: True, start, limit, confirmations, granularity)


def test_an_error_of_a_try_passes_through() -> None:
    def fits(_: int) -> bool:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        find_largest(fits, 1, 10)

"""The search for the largest batch that fits: which sizes to try.

A size that fits once may fail the next time (fragmentation, other processes), so the largest is tried again; if it
fails then, the search goes down. Sizes are assumed to fail above a threshold, which may be blurred.
"""

from __future__ import annotations

from collections.abc import Callable

CONFIRMATIONS = 2
"""How often the largest size must fit again."""


def find_largest(fits: Callable[[int], bool], start: int, limit: int | None) -> int | None:
    """The largest size up to `limit` that fits, and fits CONFIRMATIONS times more; None if nothing does.

    Sizes double from `start` until one fails, then bisection finds the last that fits. If a confirmation fails, a size
    must fit 1 + CONFIRMATIONS times in a row: steps down double until one does, then bisection goes up. So the number
    of tries grows with the logarithm of the sizes. Without a limit the search ends only when something fails.
    """

    def fits_times(size: int, times: int) -> bool:
        return all(fits(size) for _ in range(times))

    low, high = _double(fits, start if limit is None else min(start, limit), limit)
    low = _bisect(fits, low, high)
    if low and not fits_times(low, CONFIRMATIONS):
        low = _step_down(lambda size: fits_times(size, 1 + CONFIRMATIONS), low)
    return low or None


def _double(fits: Callable[[int], bool], first: int, limit: int | None) -> tuple[int, int]:
    """The last size that fits and the first that fails; 0 if the first fails, limit + 1 if none does."""
    low, size = 0, first
    while fits(size):
        if size == limit:
            return limit, limit + 1
        low, size = size, size * 2 if limit is None else min(size * 2, limit)
    return low, size


def _bisect(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest size that fits, between one that does (or 0) and one that does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _step_down(fits: Callable[[int], bool], failing: int) -> int:
    """The largest size below a failing one that fits; 0 if none does."""
    high, step = failing, 1
    while high > step:
        if fits(high - step):
            return _bisect(fits, high - step, high)
        high, step = high - step, step * 2
    return _bisect(fits, 0, high)

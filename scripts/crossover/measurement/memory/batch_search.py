"""The search for the largest batch that fits: which sizes to try, not how.

A size that fits once may fail the next time (fragmentation, other processes), so the winner is tried again, and a
failure there sends the search down. Sizes are assumed to fail above some threshold that may be blurred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Search:
    """What a search found."""

    largest: int | None
    """The largest size that fitted, every time it was tried; None where nothing does."""
    smallest_failing: int | None
    """The smallest size that failed; None where everything fits up to the limit."""
    tries: tuple[tuple[int, bool], ...]
    """Every try in order: the size, and whether it fitted."""


def find_largest(
    fits: Callable[[int], bool], start: int, limit: int | None, confirmations: int = 2, granularity: int = 1
) -> Search:
    """Find the largest multiple of `granularity` up to `limit` that fits, and fits `confirmations` times more.

    Sizes double from `start` until one fails; bisection finds the last that fits between. Where a confirmation fails,
    that size counts as failing, and from then on a size has to fit 1 + `confirmations` times in a row: steps down that
    double until one does, then bisection up. So the number of tries grows with the logarithm of the sizes, however
    `fits` behaves. `start` is rounded to a multiple and cut to the limit. Without a limit the search ends only where
    something fails. Raises ValueError for arguments that leave no size to try, and whatever `fits` raises.
    """
    if start < 1 or granularity < 1 or confirmations < 0 or (limit is not None and limit < granularity):
        raise ValueError(f"no size to try: start {start}, limit {limit}, granularity {granularity}, {confirmations}")
    tries: list[tuple[int, bool]] = []

    def fits_times(units: int, times: int) -> bool:
        for _ in range(times):
            tries.append((units * granularity, bool(fits(units * granularity))))
            if not tries[-1][1]:
                return False
        return True

    top = None if limit is None else limit // granularity
    first = max(1, start // granularity)
    low, high = _double(lambda units: fits_times(units, 1), first if top is None else min(first, top), top)
    low = _bisect(lambda units: fits_times(units, 1), low, high)
    if low and not fits_times(low, confirmations):
        low = _step_down(lambda units: fits_times(units, 1 + confirmations), low)
    failed = [size for size, fitted in tries if not fitted]
    return Search(low * granularity or None, min(failed, default=None), tuple(tries))


def _double(fits: Callable[[int], bool], first: int, top: int | None) -> tuple[int, int]:
    """The last size that fits and the first that fails; 0 where the first fails, top + 1 where none does."""
    low, size = 0, first
    while fits(size):
        if size == top:
            return top, top + 1
        low, size = size, size * 2 if top is None else min(size * 2, top)
    return low, size


def _bisect(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest size that fits, between one that does (or 0) and one that does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _step_down(fits: Callable[[int], bool], failing: int) -> int:
    """The largest size under a failing one that fits; 0 where none does."""
    high, step = failing, 1
    while high > step:
        if fits(high - step):
            return _bisect(fits, high - step, high)
        high, step = high - step, step * 2
    return _bisect(fits, 0, high)

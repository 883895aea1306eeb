"""Giving a trial up that would outlast its time limit."""

from __future__ import annotations

from crossover.errors import TooSlowError


def too_slow(spent_s: float, step_s: float, least_steps: int, time_limit_s: float) -> TooSlowError | None:
    """The error where what has passed and the least number of steps to come would outlast the limit."""
    projected_s = spent_s + step_s * least_steps
    if projected_s <= time_limit_s:
        return None
    return TooSlowError(
        f"a step takes {step_s:.3g} s, so that the trial would take at least {projected_s:.3g} s, "
        f"more than the limit of {time_limit_s:g} s; raise time_limit_s, or leave the cell out"
    )

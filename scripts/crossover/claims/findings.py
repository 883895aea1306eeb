"""What the data say of a published statement: a verdict on an interval, never on a point."""

from __future__ import annotations

from dataclasses import dataclass

REPRODUCED = "reproduced"
DIFFERS = "differs"
NOT_TESTABLE = "not_testable"
VERDICTS = (REPRODUCED, DIFFERS, NOT_TESTABLE)

MORE_TRIALS = "add trials"
MORE_SEEDS = "add seeds"

ROUNDING = 1e-9
"""Share by which an interval may miss the end of a claimed range through rounding in logarithms."""


@dataclass(frozen=True)
class Finding:
    """What the data say of a claim; a value that they do not give is None."""

    verdict: str
    reason: str
    measured: float | None = None
    low: float | None = None
    high: float | None = None


def judge(
    measured: float,
    low: float | None,
    high: float | None,
    least: float,
    most: float,
    what: str,
    remedy: str = MORE_TRIALS,
) -> Finding:
    """Hold a 95 % interval against a claimed range, its ends included; `what` names the range in words.

    `remedy` says what would narrow the interval. Reproduced if the whole interval lies within, differs if it lies
    outside, else not testable; so also without one.
    """
    if low is None or high is None:
        reason = f"a cell has one ok trial only, so that there is no 95 % interval: {MORE_TRIALS}"
        return Finding(NOT_TESTABLE, reason, measured, low, high)
    least, most = least - ROUNDING * abs(least), most + ROUNDING * abs(most)
    if least <= low and high <= most:
        verdict, reason = REPRODUCED, f"the whole 95 % interval lies {what}"
    elif high < least or low > most:
        verdict, reason = DIFFERS, f"no part of the 95 % interval lies {what}"
    else:
        verdict, reason = NOT_TESTABLE, f"the 95 % interval lies only partly {what}: {remedy}"
    return Finding(verdict, reason, measured, low, high)


def just_below(limit: float) -> float:
    """The end of a range that `limit` itself does not belong to, for `judge`."""
    return limit - 2 * ROUNDING * abs(limit)

"""Where two sides take the same time: log-log interpolation between the sizes where the sign changes.

Between neighbouring sizes the logarithm of the time ratio is taken as a straight line in the logarithm of the size,
which is exact for power laws. Nothing is imputed and nothing is extrapolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

STATUSES = {
    "bracketed": "the contender falls behind the baseline on one side and is ahead on the other",
    "below_range": "the contender is ahead at every size measured on both sides",
    "above_range": "the contender is behind at every size measured on both sides",
    "edge_tie": "both take the same time at the smallest or largest size measured: a bound on one side only",
    "reversed": "the contender is ahead at small sizes and behind at large ones",
    "multiple": "the sides cross more than once: no single answer",
    "undecided": "both take the same time at every size measured",
    "incomplete": "a cell where the answer would lie is missing, out of memory or timed out",
    "no_accelerator": "only the baseline was measured",
}
"""How the search for a crossover can end."""


@dataclass(frozen=True)
class Crossover:
    """The crossover of a contender over a baseline. Sizes in the unit of the table's `size` column."""

    status: str
    message: str
    size: float | None = None
    low: float | None = None
    """Lower end of the 95 % set; None: no interval is given."""
    high: float | None = None
    bracket: tuple[float, float] | None = None
    """Neighbouring sizes between which the sign changes."""
    roots: tuple[float, ...] = ()


def estimate_crossover(measurements: pd.DataFrame, baseline: str, contender: str) -> Crossover:
    """Estimate the size from which `contender` is faster than `baseline`.

    `measurements` has columns size, side, trial and step_time_s (in seconds; NaN where a trial gave no time). A size
    counts where both sides have a time; one that lacks a side is never filled in. Raises ValueError for
    an unknown size.
    """
    if measurements["size"].isna().any():
        raise ValueError("every measurement needs its size")
    if contender not in set(measurements["side"]):
        return Crossover("no_accelerator", f"no {contender} was measured")
    advantage, incomplete = _log_advantage(measurements, baseline, contender)
    sizes = sorted(advantage)
    if not sizes:
        return Crossover("incomplete", "no size was measured on both sides")
    signs = [_sign(advantage[size]) for size in sizes]
    crossings = _crossings(sizes, signs)
    roots = tuple(_root(low, high, advantage) for low, high in crossings)
    if len(crossings) > 1:
        return Crossover("multiple", f"the sides cross {len(crossings)} times", roots=roots)
    if len(crossings) == 1:
        return _single_crossing(crossings[0], roots, signs, incomplete)
    return _no_crossing(sizes, signs, incomplete)


def _log_advantage(measurements: pd.DataFrame, baseline: str, contender: str) -> tuple[dict[float, float], list[float]]:
    """ln(baseline time) - ln(contender time) at each complete size, and the sizes that lack a side."""
    logs = measurements.assign(log_s=measurements["step_time_s"].astype(float).map(_log))
    mean = logs.groupby(["size", "side"])["log_s"].mean().unstack("side")
    mean = mean.reindex(columns=[baseline, contender])
    difference = mean[baseline] - mean[contender]
    complete = difference.dropna()
    incomplete = sorted(float(size) for size in difference.index.difference(complete.index))
    return {float(size): float(value) for size, value in complete.items()}, incomplete  # type: ignore[arg-type]


def _log(seconds: float) -> float:
    return math.log(seconds) if seconds > 0 else math.nan


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _crossings(sizes: list[float], signs: list[int]) -> list[tuple[float, float]]:
    """Neighbouring sizes with opposite signs; sizes of exact equality between them are stepped over."""
    decided = [(size, sign) for size, sign in zip(sizes, signs, strict=True) if sign]
    return [(low, high) for (low, below), (high, above) in pairwise(decided) if below != above]


def _root(low: float, high: float, advantage: dict[float, float]) -> float:
    """Where the straight line through both ends, in log size, crosses zero; a tie in between is the root itself."""
    ties = [size for size, value in advantage.items() if low < size < high and value == 0]
    if ties:
        return math.exp(math.fsum(map(math.log, ties)) / len(ties))
    share = advantage[low] / (advantage[low] - advantage[high])
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))


def _single_crossing(
    bracket: tuple[float, float], roots: tuple[float, ...], signs: list[int], incomplete: list[float]
) -> Crossover:
    low, high = bracket
    missing = [size for size in incomplete if low < size < high]
    if missing:
        return Crossover(
            "incomplete", f"size {missing[0]:g} between {low:g} and {high:g} lacks a side", bracket=bracket
        )
    if next(sign for sign in signs if sign) > 0:
        return Crossover("reversed", STATUSES["reversed"], size=roots[0], bracket=bracket, roots=roots)
    return Crossover("bracketed", STATUSES["bracketed"], size=roots[0], bracket=bracket, roots=roots)


def _no_crossing(sizes: list[float], signs: list[int], incomplete: list[float]) -> Crossover:
    decided = {sign for sign in signs if sign}
    may_lie_below, may_lie_above = decided != {-1}, decided != {1}
    beyond = [
        size for size in incomplete if (may_lie_below and size < sizes[0]) or (may_lie_above and size > sizes[-1])
    ]
    if beyond:
        return Crossover("incomplete", f"size {beyond[0]:g} beyond the measured range lacks a side")
    if not decided:
        status = "undecided"
    elif signs[0] == 0 or signs[-1] == 0:
        status = "edge_tie"
    else:
        status = "below_range" if decided == {1} else "above_range"
    return Crossover(status, STATUSES[status])

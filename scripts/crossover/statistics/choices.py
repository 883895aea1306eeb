"""The fastest of several cells that do the same work, held against a fixed one, or against the next.

A choice among many is significant only by intervals that hold together. With k cells, those of the chosen one against
each of the others have the level of k - 1 (Bonferroni): that a cell beats one at least as fast as itself then happens
in at most 2.5 % of the cases, whichever cell is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossover.statistics.intervals import FASTER, Interval, SampleMean, compared, ratio_of


@dataclass(frozen=True)
class Choice:
    """The cell with the smallest mean, by its index, and what it is compared with."""

    chosen: int
    other: int
    ratio: Interval
    """Time of the other over that of the chosen one, with its simultaneous 95 % interval."""
    leads: bool
    """Whether the chosen one is significantly faster than each of the others."""


def choose(cells: Sequence[SampleMean], fixed: int | None = None) -> Choice:
    """The fastest of at least two cells against the cell `fixed`, or against the next if that is itself or None."""
    chosen, following, *_ = sorted(range(len(cells)), key=lambda index: cells[index].mean)
    ratios = {
        index: ratio_of(cells[chosen], cell, len(cells) - 1) for index, cell in enumerate(cells) if index != chosen
    }
    other = following if fixed in (None, chosen) else fixed
    assert other is not None
    leads = all(compared(ratio) == FASTER for ratio in ratios.values())
    return Choice(chosen, other, ratios[other], leads)

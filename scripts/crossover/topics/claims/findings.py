"""Findings about published statements: verdicts with their reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.compare.intervals import INCONCLUSIVE
from crossover.config.claim_forms import several_cells
from crossover.config.words import AXES, BASELINE, is_cpu
from crossover.errors import UserError
from crossover.tables.labels import name_by, side_word

REPRODUCED = "reproduced"
COMPATIBLE = "compatible"
DIFFERS = "differs"
NO_DATA = "no_data"

REASONS = {
    "inside": REPRODUCED,
    "overlaps": COMPATIBLE,
    "outside": DIFFERS,
    **dict.fromkeys(("straddles", "too_wide", "one_trial", "first_trial", "one_seed"), INCONCLUSIVE),
    # For the number of steps after which a side is ahead.
    "never_ahead": DIFFERS,
    **dict.fromkeys(("not_faster", "no_end"), INCONCLUSIVE),
    # For a crossover without a 95 % set.
    **dict.fromkeys(("faster_before", "slower_after"), DIFFERS),
    **dict.fromkeys(("below_range", "above_range", "edge_tie", "reversed", "multiple", "undecided"), INCONCLUSIVE),
    **dict.fromkeys(("incomplete", "no_accelerator", "no_times", "no_common_size"), NO_DATA),
    "several_devices": INCONCLUSIVE,
    **dict.fromkeys(("no_rows", "no_cell", "not_ok", "not_measured", "zero", "no_common_trial"), NO_DATA),
    **dict.fromkeys(("not_trained", "generated_data", "no_contender", "failed", "baseline_failed"), NO_DATA),
}
"""The verdict for each reason; report/words.j2 has the wording of the reasons."""

ROUNDING = 1e-9
"""Share by which an interval may exceed a range, to allow for the rounding of logarithms."""

TOO_WIDE = 3
"""An interval that overlaps a range is inconclusive if it is more than this many times as wide as the range."""


@dataclass(frozen=True)
class Finding:
    """The outcome of checking a claim."""

    reason: str
    """One of REASONS."""
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    place: str | None = None
    """The size, cell or value to which the reason refers."""

    @property
    def verdict(self) -> str:
        return REASONS[self.reason]


class NoFindingError(Exception):
    """A claim cannot be judged; `finding` has the reason."""

    def __init__(self, reason: str, place: str | None = None) -> None:
        super().__init__(reason, place)
        self.finding = Finding(reason, place=place)


def judge(
    measured: float | None, low: float | None, high: float | None, least: float, most: float, place: str | None = None
) -> Finding:
    """Compare a 95 % interval with a claimed range, which includes its ends.

    A range from 0 is a limit: an interval on both sides of it supports neither the claim nor its opposite.
    """
    least, most = least - ROUNDING * abs(least), most + ROUNDING * abs(most)
    if low is None or high is None:
        reason = "one_trial"
    elif least <= low and high <= most:
        reason = "inside"
    elif high < least or low > most:
        reason = "outside"
    elif least == 0:
        reason = "straddles"
    else:
        reason = "too_wide" if _is_too_wide(low, high, least, most) else "overlaps"
    return Finding(reason, measured, low, high, place)


def _is_too_wide(low: float, high: float, least: float, most: float) -> bool:
    """Widths are logarithmic if all ends are above 0."""
    if min(low, least) > 0:
        return math.log(high / low) > TOO_WIDE * math.log(most / least)
    return high - low > TOO_WIDE * (most - least)


def pinned(table: pd.DataFrame, axes: Mapping[str, Any]) -> pd.DataFrame:
    """The rows with all pinned values; raises NoFindingError if a value leaves no row."""
    device = str(axes.get("device", BASELINE))
    if not is_cpu(device) and len(table) and all(map(is_cpu, table["device"])):
        raise NoFindingError("no_accelerator")
    for axis, value in axes.items():
        values = table[axis] if axis in table.columns else pd.Series(pd.NA, table.index, object)
        table = table[(values == value).fillna(False).astype(bool)]
        if table.empty:
            raise NoFindingError("no_cell", axes_label({axis: value}))
    return table


def check_single(rows: pd.DataFrame, study: str, where: Mapping[str, Any], free: str = "") -> None:
    """Raise UserError if rows differ in an axis other than `free`, since a claim must pin all others."""
    loose = [axis for axis in AXES if axis != free and axis in rows.columns and rows[axis].nunique(dropna=False) > 1]
    if loose:
        raise UserError(f"study '{study}': claims: {several_cells(where, loose)}")


def axes_label(axes: Mapping[str, Any]) -> str:
    """Pinned axes as text, as in 'as published, GPU, size 2,000'."""
    words = {"device": side_word, "size": "size {:,}".format}
    return ", ".join(words[axis](value) if axis in words else name_by(axes, [axis]) for axis, value in axes.items())

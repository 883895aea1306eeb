"""Verdicts on published statements: an interval held against a claimed range, and the reasons there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.config.claim_forms import several_cells
from crossover.config.words import AXES
from crossover.errors import UserError
from crossover.tables.labels import name_by, side_word
from crossover.tables.registry import CROSSOVER_STATUSES

REPRODUCED = "reproduced"
DIFFERS = "differs"
NOT_TESTABLE = "not_testable"
VERDICTS = (REPRODUCED, DIFFERS, NOT_TESTABLE)

REASONS = (
    *("inside", "outside", "straddles", "one_trial"),
    # A crossover by the sizes at which the accelerator is surely behind or ahead.
    *("sizes_inside", "ahead_before", "behind_after", "sizes_straddle", "never_behind", "never_ahead"),
    *(status for status in CROSSOVER_STATUSES if status != "bracketed"),
    *("no_times", "no_common_size", "several_devices", "no_rows", "no_cell", "not_ok"),
    *("not_measured", "zero", "no_common_trial"),
    *("not_trained", "generated_data", "no_contender", "failed", "baseline_failed", "one_seed"),
)
"""Why a verdict is what it is; report/words.j2 says each in words."""

ROUNDING = 1e-9
"""Share by which an interval may miss the end of a range, since logarithms round."""


@dataclass(frozen=True)
class Finding:
    """What the data say about a claim; a value that they do not give is None."""

    verdict: str
    reason: str
    """One of REASONS."""
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    place: str | None = None
    """The size, cell or value that the reason is about."""


class NotTestableError(Exception):
    """The data do not hold what a claim is about."""

    def __init__(self, reason: str, place: str | None = None) -> None:
        super().__init__(reason, place)
        self.finding = Finding(NOT_TESTABLE, reason, place=place)


def judge(
    measured: float, low: float | None, high: float | None, least: float, most: float, place: str | None = None
) -> Finding:
    """Hold a 95 % interval against a claimed range, its ends included.

    Reproduced if the whole interval lies within, differs if all of it lies outside, else not testable.
    """
    if low is None or high is None:
        return Finding(NOT_TESTABLE, "one_trial", measured, low, high, place)
    least, most = least - ROUNDING * abs(least), most + ROUNDING * abs(most)
    if least <= low and high <= most:
        return Finding(REPRODUCED, "inside", measured, low, high, place)
    if high < least or low > most:
        return Finding(DIFFERS, "outside", measured, low, high, place)
    return Finding(NOT_TESTABLE, "straddles", measured, low, high, place)


def just_below(limit: float) -> float:
    """The largest end of a range that excludes `limit` itself, for `judge`."""
    return limit - 2 * ROUNDING * abs(limit)


def pinned(table: pd.DataFrame, axes: Mapping[str, Any]) -> pd.DataFrame:
    """The rows with the pinned values; raises NotTestableError with the first value that no row has."""
    for axis, value in axes.items():
        known = table[axis] if axis in table.columns else pd.Series(pd.NA, table.index, object)
        table = table[(known == value).fillna(False).astype(bool)]
        if table.empty:
            raise NotTestableError("no_cell", axes_label({axis: value}))
    return table


def check_single(rows: pd.DataFrame, study: str, where: Mapping[str, Any], free: str = "") -> None:
    """Raise UserError if rows differ in an axis other than `free`: a claim has to pin it."""
    loose = [axis for axis in AXES if axis != free and axis in rows.columns and rows[axis].nunique(dropna=False) > 1]
    if loose:
        raise UserError(f"study '{study}': claims: {several_cells(where, loose)}")


def axes_label(axes: Mapping[str, Any]) -> str:
    """Pinned axes as text: 'as published, GPU, size 2,000'; empty without any."""
    words = {"device": side_word, "size": "size {:,}".format}
    return ", ".join(words[axis](value) if axis in words else name_by(axes, [axis]) for axis, value in axes.items())

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

REASONS = {
    "inside": "the whole 95 % interval lies within the tested range",
    "outside": "no part of the 95 % interval lies within the tested range",
    "straddles": "the 95 % interval lies only partly within the tested range; more trials or seeds narrow it",
    "one_trial": "a cell has one ok trial only, which gives no interval (a crossover: the sizes that it lies between)",
    "sizes_inside": "the accelerator is surely behind and surely ahead at two sizes within the tested range (both)",
    "ahead_before": "the accelerator is surely ahead at a size at or below the tested range (that size)",
    "behind_after": "the accelerator is surely behind at a size at or above the tested range (that size)",
    "sizes_straddle": "the sizes at which it is surely behind or ahead lie on both sides of an end of the range",
    "never_behind": "at no size is the accelerator surely behind",
    "never_ahead": "at no size is the accelerator surely ahead",
    **{status: f"{words} (where)" for status, words in CROSSOVER_STATUSES.items() if status != "bracketed"},
    "no_times": "no cell of the study gave a time",
    "no_common_size": "no size was measured on both sides (the sides)",
    "several_devices": "several accelerators were measured, and 'where' pins none (their names)",
    "no_rows": "nothing of the study was measured",
    "no_cell": "no trial with this value of an axis was measured (the value)",
    "not_ok": "no trial of the cell ended ok (the cell, and how they ended)",
    "not_measured": "no trial of the cell holds the metric (metric and cell)",
    "zero": "the metric is 0, so there is no ratio (metric and cell)",
    "no_common_trial": "no trial holds both metrics",
    "not_trained": "no model of the study was trained (the study)",
    "no_contender": "no other device or precision was trained",
    "failed": "trainings failed (the side, and how they ended)",
    "baseline_failed": "trainings of the CPU in fp32 failed (the side compared with it, and how they ended)",
    "one_seed": "fewer than two seeds were trained on both sides (the side compared with the CPU in fp32)",
}
"""Why a verdict is what it is. Brackets say what column `place` then holds."""

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

"""Claims about the size from which on the accelerator wins."""

from __future__ import annotations

import pandas as pd

from crossover.claims.findings import (
    DIFFERS,
    NOT_TESTABLE,
    REPRODUCED,
    Finding,
    NotTestableError,
    check_single,
    judge,
    pinned,
)
from crossover.config.claim_forms import CrossoverBetween
from crossover.tables.frames import headline_rows, of_study, rows_with
from crossover.tables.labels import axis_label, side_word
from crossover.tables.registry import CROSSOVER_STATUSES, LINE_AXES
from crossover.text import listed, place_text

SINGLE = ("bracketed", "incomplete")
"""Statuses of a search that found one crossing at most, though a size in between may lack a side."""

VERDICTS_BY_SIZES = {"sizes_inside": REPRODUCED, "ahead_before": DIFFERS, "behind_after": DIFFERS}
"""The verdicts of reasons that rest on single sizes; with any other the claim is not testable."""


def check_crossover(form: CrossoverBetween, study: str, crossovers: pd.DataFrame, ratios: pd.DataFrame) -> Finding:
    """Hold a line's crossover against its claimed range, by its 95 % set, or by the sizes that the trials tell apart.

    A size is told apart if the 95 % interval of the ratio of times excludes 1. One at or above the range where the
    accelerator is surely behind, or one at or below it where it is surely ahead, contradicts the claim, whatever else
    was measured; one of each kind within the range, and no more than one crossing, reproduce it.
    Raises NotTestableError, and UserError if several lines are selected.
    """
    line = _single_line(crossovers, study, form)
    if line["status"] == "no_accelerator":
        raise NotTestableError("no_accelerator" if line["trials"] else "no_times")
    point, low, high = (_number(line[name]) for name in ("crossover", "crossover_low", "crossover_high"))
    if line["status"] == "bracketed" and point is not None and low is not None and high is not None:
        return judge(point, low, high, form.low, form.high)
    return _by_sizes(form, line, _ratios_of(line, ratios), point if line["status"] == "bracketed" else None)


def _single_line(crossovers: pd.DataFrame, study: str, form: CrossoverBetween) -> pd.Series:
    lines = headline_rows(of_study(crossovers, study)) if len(crossovers) else crossovers
    if lines.empty:
        raise NotTestableError("no_rows")
    rows = pinned(lines, form.where)
    check_single(rows, study, form.where, free="device")
    if len(rows) > 1:
        raise NotTestableError("several_devices", listed(rows["device"].tolist()))
    return rows.iloc[0]


def _ratios_of(line: pd.Series, ratios: pd.DataFrame) -> pd.DataFrame:
    """Ratios of the line's two sides over the line's x axis, in column x; raises NotTestableError without any."""
    sides = {"pair": "device", "baseline": line["baseline"], "contender": line["contender"]}
    wanted = {axis: line[axis] for axis in LINE_AXES} | sides
    found = rows_with(ratios, list(wanted), wanted)
    found = found.assign(x=found[line["x_axis"]].astype(float)).dropna(subset="x")
    if found.empty:
        raise NotTestableError("no_common_size", listed([side_word(line["baseline"]), side_word(line["device"])]))
    return found


def _by_sizes(form: CrossoverBetween, line: pd.Series, ratios: pd.DataFrame, point: float | None) -> Finding:
    behind, ahead = ratios.loc[ratios["ratio_high"] < 1, "x"], ratios.loc[ratios["ratio_low"] > 1, "x"]
    low, high = _number(behind.max()), _number(ahead.min())
    reason = _reason(form, str(line["status"]), low, high, one_trial=bool(ratios["ratio_low"].isna().all()))
    places = {
        "ahead_before": [high],
        "behind_after": [low],
        "sizes_inside": [low, high],
        "one_trial": line[["bracket_low", "bracket_high"]].dropna().tolist(),
        "below_range": [ratios["x"].min()],
        "above_range": [ratios["x"].max()],
        "multiple": line["roots"],
    }.get(reason, line["doubt_at"] if reason in CROSSOVER_STATUSES else [])
    place = f"{listed([_place(line, x) for x in places])} {axis_label(dict(line))}" if len(places) else None
    if low is not None and high is not None and low >= high:
        low = high = None
    return Finding(VERDICTS_BY_SIZES.get(reason, NOT_TESTABLE), reason, point, low, high, place)


def _reason(form: CrossoverBetween, status: str, low: float | None, high: float | None, one_trial: bool) -> str:
    """What the sizes say; `low` is the largest at which the accelerator is surely behind, `high` the smallest ahead."""
    if high is not None and high <= form.low:
        return "ahead_before"
    if low is not None and low >= form.high:
        return "behind_after"
    if low is not None and high is not None and form.low <= low < high <= form.high and status in SINGLE:
        return "sizes_inside"
    if one_trial:
        return "one_trial"
    if status != "bracketed":
        return status
    return "never_behind" if low is None else "never_ahead" if high is None else "sizes_straddle"


def _place(line: pd.Series, x: float) -> str:
    """A place on the x axis."""
    return place_text(x, str(line["x_axis"]))


def _number(value: object) -> float | None:
    return None if value is None or pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]

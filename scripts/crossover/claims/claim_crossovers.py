"""Claims on where the accelerator begins to win."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from crossover.answers.sentences import known_place
from crossover.answers.wording import listed
from crossover.claims.claim_quantities import devices_apart, line_unit
from crossover.claims.findings import DIFFERS, MORE_TRIALS, NOT_TESTABLE, REPRODUCED, Finding, judge
from crossover.claims.selections import NothingToTestError, loose_axes, pinned
from crossover.config.claim_forms import CrossoverBetween, several_cells
from crossover.errors import UserError
from crossover.statistics.comparisons import headline_rows
from crossover.statistics.summary import speedups
from crossover.tables.frames import LINE_AXES, of_study, with_ok_times

SINGLE = ("bracketed", "incomplete")
"""How the search ended where the sides cross once, though a size in between may lack a side."""


def check_crossover(
    form: CrossoverBetween, study: str, measurements: pd.DataFrame, crossovers: pd.DataFrame
) -> Finding:
    """Hold a line's crossover against its claimed range, by its 95 % set, or by the sizes that the trials tell apart.

    A size is told apart where the 95 % interval of the ratio of times excludes 1. One at or above the range where the
    accelerator is surely behind, or one at or below it where it is surely ahead, contradicts the claim, whatever else
    was measured; one of each kind within the range, and no more than one crossing, bear it out.
    Raises NothingToTestError, and UserError where several lines are selected.
    """
    line = _single_line(_lines_of(crossovers, study), study, form)
    if line["status"] == "no_accelerator":
        only = "only the CPU was measured: run it on a machine that has a GPU"
        raise NothingToTestError(only if line["trials"] else "no cell gave a time: see the problems")
    point, low, high = (_number(line[name]) for name in ("crossover", "crossover_low", "crossover_high"))
    if line["status"] == "bracketed" and point is not None and low is not None and high is not None:
        return judge(point, low, high, form.low, form.high, f"within {form.claimed}")
    return _by_sizes(form, line, _told_apart(line, measurements), point if line["status"] == "bracketed" else None)


def _lines_of(crossovers: pd.DataFrame, study: str) -> pd.DataFrame:
    return headline_rows(of_study(crossovers, study)) if len(crossovers) else crossovers


def _single_line(lines: pd.DataFrame, study: str, form: CrossoverBetween) -> pd.Series:
    if lines.empty:
        raise NothingToTestError("nothing of this study was measured")
    rows = pinned(lines, form.where)
    if loose := [axis for axis in loose_axes(rows) if axis != "device"]:
        raise UserError(f"study '{study}': claims: {several_cells(form.where, loose)}")
    if len(rows) > 1:
        several = listed(devices_apart(rows["device"].tolist()))
        raise NothingToTestError(f"several accelerators were measured ({several}): pin device in 'where'")
    return rows.iloc[0]


def _told_apart(line: pd.Series, measurements: pd.DataFrame) -> pd.DataFrame:
    """Speed-ups of the line's accelerator over its baseline at each x; raises NothingToTestError without intervals."""
    axes = {axis: line[axis] for axis in LINE_AXES if axis in measurements.columns}
    trials = with_ok_times(pinned(measurements, axes))
    trials = trials.assign(x=trials[line["x_axis"]].astype(float))
    found = speedups(trials, line["baseline"], line["device"])
    if found.empty:
        sides = listed(devices_apart([line["baseline"], line["device"]]))
        raise NothingToTestError(f"no size was measured on both {sides}")
    return found


def _by_sizes(form: CrossoverBetween, line: pd.Series, ratios: pd.DataFrame, point: float | None) -> Finding:
    behind, ahead = ratios.loc[ratios["high"] < 1, "x"], ratios.loc[ratios["low"] > 1, "x"]
    low, high = _number(behind.max()), _number(ahead.min())
    unit, at = line_unit(line), partial(known_place, line["x_axis"])

    def finding(verdict: str, reason: str) -> Finding:
        ordered = low is None or high is None or low < high
        return Finding(verdict, reason, point, low if ordered else None, high if ordered else None)

    if high is not None and high <= form.low:
        return finding(DIFFERS, f"the accelerator is ahead already at {at(high)} {unit}, by its 95 % interval")
    if low is not None and low >= form.high:
        return finding(DIFFERS, f"the accelerator is still behind at {at(low)} {unit}, by its 95 % interval")
    if low is not None and high is not None and form.low <= low < high <= form.high and line["status"] in SINGLE:
        return finding(
            REPRODUCED,
            f"the accelerator is behind at {at(low)} and ahead at {at(high)} {unit}, by the 95 % "
            "intervals at these measured sizes",
        )
    if ratios["low"].isna().all():
        low, high = _number(line["bracket_low"]), _number(line["bracket_high"])
        between = f"; indicative: between {at(low)} and {at(high)} {unit}" if low and high else ""
        low = high = None
        return finding(NOT_TESTABLE, f"one ok trial a cell gives no 95 % interval{between}: {MORE_TRIALS}")
    if line["status"] == "bracketed" and (low is None or high is None):
        side = "behind" if low is None else "ahead"
        return finding(NOT_TESTABLE, f"at no size is the accelerator {side} by the 95 % interval: {MORE_TRIALS}")
    ends = [f"{at(end)} {unit}" for end in (ratios["x"].min(), ratios["x"].max())]
    return finding(NOT_TESTABLE, _open(str(line["status"]), str(line["message"]), ends))


def _open(status: str, message: str, ends: Sequence[str]) -> str:
    """Why the sizes measured, from one end to the other, leave a claim open."""
    if status == "below_range":
        return f"{message}, from {ends[0]} on: measure smaller sizes"
    if status == "above_range":
        return f"{message}, up to {ends[1]}: measure larger sizes"
    if status == "bracketed":
        return (
            "the sizes at which the accelerator is surely behind and surely ahead lie on both sides of an end of the "
            f"claimed range: {MORE_TRIALS}, or measure at that end"
        )
    return f"{message}: {MORE_TRIALS}" if status in ("undecided", "edge_tie") else message


def _number(value: object) -> float | None:
    return None if value is None or pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]

"""Claims about the size from which on the accelerator wins."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from crossover.claims.findings import Finding, NoFindingError, check_single, judge, pinned
from crossover.config.claim_forms import CrossoverBetween
from crossover.tables.frames import headline_rows, of_study
from crossover.tables.labels import axis_label, side_word
from crossover.text import listed, place_text

SINGLE = ("bracketed", "incomplete")
"""Statuses of a search that found one crossing at most, though a size in between may lack a side."""


def check_crossover(form: CrossoverBetween, study: str, crossovers: pd.DataFrame) -> Finding:
    """Hold a line's crossover against its claimed range, by its 95 % set, or by the sizes with a significant sign.

    A size at or above the range at which the accelerator is significantly slower, or one at or below it at which it is
    significantly faster, contradicts the claim, whatever else was measured. Without a set, the crossover lies between a
    significantly slower and a significantly faster size, if the search found one crossing at most.
    Raises NoFindingError, and UserError if several lines are selected.
    """
    line = _single_line(crossovers, study, form)
    status = str(line["status"])
    if status == "no_accelerator":
        raise NoFindingError("no_accelerator" if line["trials"] else "no_times")
    if status == "incomplete" and line["doubt"] == "no_common_size":
        raise NoFindingError("no_common_size", listed([side_word(line["baseline"]), side_word(line["device"])]))
    ends = [_number(line[name]) for name in ("crossover", "crossover_low", "crossover_high")]
    point, low, high = ends if status == "bracketed" else (None, None, None)
    if low is not None and high is not None:
        return judge(point, low, high, form.low, form.high)
    return _by_sizes(form, line, point)


def _single_line(crossovers: pd.DataFrame, study: str, form: CrossoverBetween) -> pd.Series:
    lines = headline_rows(of_study(crossovers, study)) if len(crossovers) else crossovers
    if lines.empty:
        raise NoFindingError("no_rows")
    rows = pinned(lines, form.where)
    check_single(rows, study, form.where, free="device")
    if len(rows) > 1:
        raise NoFindingError("several_devices", listed(rows["device"].tolist()))
    return rows.iloc[0]


def _by_sizes(form: CrossoverBetween, line: pd.Series, point: float | None) -> Finding:
    """What the sizes say at which the accelerator is significantly slower or faster."""
    status, slower, faster = str(line["status"]), _number(line["slower_up_to"]), _number(line["faster_from"])
    low, high = (None, None) if slower is not None and faster is not None and slower >= faster else (slower, faster)
    if faster is not None and faster <= form.low:
        return Finding("faster_before", point, low, high, _places(line, [faster]))
    if slower is not None and slower >= form.high:
        return Finding("slower_after", point, low, high, _places(line, [slower]))
    if low is not None and high is not None and status in SINGLE:
        return judge(point, low, high, form.low, form.high, _places(line, [low, high]))
    if status == "bracketed" or (low is None and high is None and line["trials"] == 1):
        bracket = line[["bracket_low", "bracket_high"]].dropna().tolist()
        return Finding("one_trial", point, low, high, _places(line, bracket))
    places = {"below_range": [high], "above_range": [low], "multiple": line["roots"]}.get(status, line["doubt_at"])
    return Finding(status, point, low, high, _places(line, places))


def _places(line: pd.Series, points: Sequence[float]) -> str | None:
    """Points on the x axis, with its unit."""
    if not len(points):
        return None
    return f"{listed([place_text(x, str(line['x_axis'])) for x in points])} {axis_label(dict(line))}"


def _number(value: object) -> float | None:
    return None if value is None or pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]

"""Answers on bottlenecks: the largest part of a step, the size up to which it remains the largest, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pandas as pd

from crossover.compare.intervals import columns_of, interval_of
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, series_axes
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import axis_label, name_by, side_word, varying
from crossover.tables.registry import REMEDIES, SPLIT, UNEXPLAINED
from crossover.text import number_text, percent_text
from crossover.topics.answer import Answer
from crossover.topics.bottlenecks.table import is_hidden_by_load
from crossover.topics.caveats import basis
from crossover.topics.wording import point_of, points_of, position_text, span_text

WIDEST = 100.0
"""Ratio of the ends of a gain's interval above which it tells nothing."""
LEAST_TOLD = 0.005
"""Share of a step below which a part is not worth a word: it would be told as 'under 1 %'."""
CAUSES = {part: words for part, words in SPLIT.items() if part != UNEXPLAINED}


@dataclass(frozen=True, kw_only=True)
class Bottleneck(Answer):
    """The largest part of a step at the first point of a series; if load hides it, without its fields."""

    kind = "bottleneck"
    statuses = ("throughout", "up_to", "not_found", "hidden")

    part: str = ""
    share: float = 0.0
    share_low: float | None = None
    share_high: float | None = None
    unit: str = ""
    """The unit of `first` and `last`."""
    first: float = 0.0
    last: float = 0.0
    """The point up to which it is the largest part."""
    second: str | None = None
    """The second largest part or, if the largest is unexplained, the largest explained one with its share."""
    at_the_end: str = ""
    """The largest part at the largest point."""
    is_prepared: bool = False
    """Whether the gain is that of a step whose batches are prepared ahead, which saves a part of it."""
    is_uncounted: bool = False
    """Whether the operations of the first point's step were not counted, which leaves its work unexplained."""
    remedy: str | None = None
    gain: float | None = None
    """The speed-up by the remedy."""
    gain_low: float | None = None
    gain_high: float | None = None

    def sentence(self) -> str:
        if self.status == "hidden":
            return f"load on this machine hides the cause of the time of a {self.device} step"
        place = f"{percent_text(self.share)} of a {self.device} step at {position_text(self.first, self.unit)}"
        up_to = f" and the largest part up to {position_text(self.last, self.unit)}" if self.last != self.first else ""
        if self.status == "not_found":
            second = f"; the largest explained part is {self.second}" if self.second else ""
            end = self._end() if self.at_the_end != UNEXPLAINED else ""
            uncounted = ", since torch cannot count its operations" if self.is_uncounted else ""
            return f"the cause was not found: {place} is unexplained{up_to}{uncounted}{second}{end}"
        if self.status == "throughout" and up_to:
            up_to = f" and the largest part at every {point_of(self.unit)} measured"
        is_graph_free = self.part == "Python and other host work" and self.device != "CPU"
        which = ", which a CUDA graph cannot capture," if is_graph_free else ""
        second = f", followed by {self.second}" if self.second else ""
        end = self._end() if self.status == "up_to" else ""
        return f"{self.part}{which} is {place}{up_to}{second}{self._remedy()}{end}"

    def _end(self) -> str:
        """The largest part at the largest point."""
        again = "again " if self.at_the_end == self.part else ""
        is_found = self.at_the_end != UNEXPLAINED
        found = f"the largest part is {again}{self.at_the_end}" if is_found else "no cause was found"
        return f"; at the largest {point_of(self.unit)}, {found}"

    def _remedy(self) -> str:
        """How much faster the remedy makes a step."""
        if self.gain is None or self.remedy is None:
            return ""
        start = "; with batches prepared ahead, " if self.is_prepared else "; "
        low, high = self.gain_low, self.gain_high
        interval = "" if low is None or high is None else f" (95 % CI {span_text([low, high], number_text)})"
        if low is not None and high is not None and low <= 1 <= high:
            unsure = interval if high < WIDEST * low else " in so few trials"
            return f"{start}no significant gain from {self.remedy}{unsure}"
        per_sample = " per sample" if "times the batch" in self.remedy else ""
        return f"{start}{self.remedy} is {number_text(self.gain)}x faster{per_sample}{interval}"

    def caveat_words(self, caveat: str) -> str:
        if caveat != "one_trial":
            return super().caveat_words(caveat)
        return "remedies tried in one trial" + (
            f" at some {points_of(self.unit)}" if self.share_low is not None else ""
        )


def bottleneck_answers(cells: pd.DataFrame, x_axis: str) -> list[Bottleneck]:
    """The bottleneck at the first point of each series and device, with its remedy, unless load hides it.

    The first answer on an accelerator is a main one, or without any the first on the CPU.
    """
    x_axis = "size" if x_axis == CPU_THREADS else x_axis
    axes, along = series_axes(x_axis), X_AXES[x_axis]
    rows = on_all_cores(cells).dropna(subset=["bottleneck"]).sort_values(along, kind="stable")
    lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in records(rows):
        lines.setdefault(tuple(row[axis] for axis in (*axes, "device")), []).append(row)
    varied_axes = varying(cells, axes)
    answers = [_answer(line, varied_axes, x_axis) for line in lines.values()]
    main = next((answer for answer in answers if answer.device != side_word(BASELINE)), next(iter(answers), None))
    return [replace(answer, main=answer is main) for answer in answers]


def _answer(rows: list[dict[str, Any]], varied_axes: list[str], x_axis: str) -> Bottleneck:
    first, last = rows[0], rows[-1]
    bottleneck = first["bottleneck"]
    rests_on = basis(min(row["remedy_trials"] for row in rows), pd.DataFrame(rows))
    about: dict[str, Any] = {
        "machine": first["machine"],
        "series": name_by(first, varied_axes),
        "device": side_word(first["device"]),
        **rests_on,
        "caveats": [*rests_on["caveats"], *first["remedy_flags"]],
    }
    if is_hidden_by_load(first):
        return Bottleneck(**about, status="hidden")
    same = list(takewhile(lambda row: row["bottleneck"] == bottleneck, rows))
    is_found = bottleneck != UNEXPLAINED
    return Bottleneck(
        **about,
        status="not_found" if not is_found else "throughout" if len(same) == len(rows) else "up_to",
        part=SPLIT[bottleneck],
        second=CAUSES.get(first["second_bottleneck"]) if is_found else _largest_explained(first),
        **columns_of(interval_of(first, f"{bottleneck}_share{{}}"), "share{}"),
        unit=axis_label({**first, "x_axis": x_axis}),
        first=first[x_axis],
        last=same[-1][x_axis],
        remedy=REMEDIES.get(first["remedy"]),
        **columns_of(interval_of(first, "gain{}"), "gain{}"),
        is_prepared=bottleneck != "loader" and _or_0(first, "loader") + _or_0(first, "transfer") >= LEAST_TOLD,
        is_uncounted=first["flops_per_step"] is None,
        at_the_end=CAUSES.get(last["bottleneck"], UNEXPLAINED),
    )


def _largest_explained(row: Mapping[str, Any]) -> str | None:
    """The largest explained part of a step with its share, such as 'calling operators, 23 %'; None without one."""
    shares = {part: _or_0(row, part) for part in CAUSES}
    largest = max(shares, key=lambda part: shares[part])
    return f"{CAUSES[largest]}, {percent_text(shares[largest])}" if shares[largest] else None


def _or_0(row: Mapping[str, Any], part: str) -> float:
    """The share of a part of a step; 0 if it is unknown."""
    return row[f"{part}_share"] or 0.0

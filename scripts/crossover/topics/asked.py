"""Answers on the sides that a study names under `asks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pandas as pd

from crossover.compare.intervals import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER, Interval, columns_of, compared
from crossover.config.claim_forms import Side
from crossover.config.study import Asks
from crossover.config.words import is_cpu
from crossover.tables.frames import first_row, on_all_cores, records, rows_with
from crossover.tables.labels import name_by, side_word, varying
from crossover.tables.registry import CELL_AXES, DETERMINISTIC, SERIES_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import percent_text
from crossover.topics.answer import COMPARED, Comparison
from crossover.topics.caveats import basis, detectable
from crossover.topics.claims.cell_claims import interval_of_ratio, ratio_of_sides
from crossover.topics.claims.findings import NoFindingError
from crossover.topics.wording import span_text


@dataclass(frozen=True, kw_only=True)
class Asked(Comparison):
    """The comparison of the sides under `asks` in one metric: of the slower over the faster in time, else of the sides.

    Without an interval for metrics that are equal in all trials.
    """

    kind = "asked"
    statuses = (*COMPARED, EQUIVALENT, "better", "worse")
    differences = (FASTER, SLOWER, "better", "worse")
    in_sentence = ("winner", "loser", "metric", "place")

    metric: str
    place: str

    @property
    def quantity(self) -> str | None:
        return self.metric

    def sentence_on(self, alike: Sequence[Self]) -> str:
        place = f", {self.place}" if self.place else ""
        return f"{self.device}{place}: {self.without_place(alike)}"

    def without_place(self, alike: Sequence[Self]) -> str:
        ratios = [answer.ratio for answer in alike]
        if self.metric == "step_time_s":
            return self.in_time(alike, " in time")
        if self.metric in ("relative_error", "max_relative_error"):
            largest = "largest " if self.metric == "max_relative_error" else ""
            return f"{largest}relative error of {self.winner} {self.ratios_text(alike)}x that of {self.loser}"
        if self.status == INCONCLUSIVE and max(max(ratios) - 1, 1 - min(ratios)) >= 0.01:
            return f"no significant difference in memory between {self.winner} and {self.loser}"
        if self.status in (EQUIVALENT, INCONCLUSIVE):
            return f"{self.winner} needs the same memory as {self.loser}"
        off = span_text(ratios, lambda ratio: percent_text(abs(ratio - 1)))
        return f"{self.winner} takes {off} {'less' if self.ratio < 1 else 'more'} memory than {self.loser}"


def asked_answers(tables: RunTables, asks: Asks, together: int) -> list[Asked]:
    """One answer per metric, series and device, at the largest size that has both sides; accelerators first.

    The study chose the sides before the measurement, so the intervals need no correction for selection. `together` is
    the study's number of comparisons.
    """
    cells = on_all_cores(tables.cells).dropna(subset=["step_time_s"])
    of, over = (rows_with(cells, list(side), side) for side in (asks.of, asks.over))
    shared = [axis for axis in CELL_AXES if axis not in {*asks.of, *asks.over}]
    both = of.merge(over[shared], on=shared)
    if both.empty:
        return []
    series = [axis for axis in shared if axis != "size"]
    largest = both[both["size"] == both.groupby(series)["size"].transform("max")]
    varied_axes = [axis for axis in varying(both, SERIES_AXES) if axis in shared]
    ordered = largest.sort_values("device", key=lambda devices: devices.map(is_cpu), kind="stable")
    return [
        replace(answer, series=name_by(cell, varied_axes))
        for cell in records(ordered)
        for metric in asks.metrics
        if (answer := _asked_answer(metric, {axis: cell[axis] for axis in shared}, tables, asks, together))
    ]


def _asked_answer(metric: str, shared: Mapping[str, Any], tables: RunTables, asks: Asks, together: int) -> Asked | None:
    """None without a ratio of both sides."""
    of, over = (Side({**shared, **side}, metric) for side in (asks.of, asks.over))
    try:
        log_ratio, trials = ratio_of_sides(of, over, shared["study"], tables.measurements)
    except NoFindingError:
        return None
    ratio = interval_of_ratio(log_ratio, together)
    differing = [axis for axis in asks.of if asks.of[axis] != asks.over[axis]]
    alike = [axis for axis in asks.of if axis not in differing]
    names = [name_by(side, differing) for side in (asks.of, asks.over)]
    statuses = ("worse", "better")
    if metric == "step_time_s":
        statuses = (FASTER, SLOWER)
        if ratio.mean < 1:
            ratio = ratio.inverted()
        else:
            names.reverse()
    cells = pd.concat([rows_with(tables.cells, list(side.axes), side.axes) for side in (of, over)])
    is_deterministic = metric in DETERMINISTIC
    status = compared(ratio, 0.0, *statuses)
    return Asked(
        main=True,
        machine=shared["machine"],
        status=status,
        detectable=None if is_deterministic else detectable(ratio, status),
        metric=metric,
        **columns_of(Interval(ratio.mean) if is_deterministic else ratio, "ratio{}"),
        winner=names[0],
        loser=names[1],
        device=side_word(shared["device"]),
        place=name_by(first_row(cells), [*varying(tables.cells, ["size"]), *alike]),
        **({"trials": trials} if is_deterministic else basis(trials, cells)),
    )

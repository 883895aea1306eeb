"""Answers on devices at their best: the crossover of their fastest candidates, and how far tuning moves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from crossover.compare.best import BEST, CANDIDATE_AXES, best_axes, candidates_of
from crossover.compare.cells import cell_key
from crossover.compare.choices import choose
from crossover.config.words import BASELINE_SETTINGS, X_AXES, threads_of_side
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.labels import name_by, place_on, side_word, varying
from crossover.tables.run_tables import RunTables
from crossover.text import number_text
from crossover.topics.caveats import BASELINE_AXES, basis, compared_ratio, flags_of
from crossover.topics.comparisons import Setting
from crossover.topics.crossovers.answers import CROSSED, LEADS, Crossover
from crossover.topics.crossovers.sides import crossover_fields, in_bracket, reach_of_lead
from crossover.topics.wording import points_text, position_text

PLAINLY = {
    "below_range": "untuned, the GPU is faster throughout",
    "above_range": "untuned, the CPU is faster throughout",
}


@dataclass(frozen=True, kw_only=True)
class Best(Crossover):
    """The crossover of an accelerator with the CPU, both in their fastest configurations."""

    kind = "best"
    in_sentence = (*Crossover.in_sentence, "has_points")

    winner_configurations: Sequence[str]
    """The fastest within the crossover's bracket, or else at the smallest and the largest size."""
    loser_configurations: Sequence[str]
    compared_at: Sequence[float] = ()
    """The points at which both are compared, if others were measured."""
    moved_status: str | None
    """The status of the crossover in the baseline settings."""
    moved_from: float | None
    """That crossover."""
    factor: float | None
    """The crossover over that in the baseline settings."""

    @property
    def has_points(self) -> bool:
        return len(self.compared_at) > 0

    def configurations(self) -> str:
        """The fastest configurations of both sides."""
        winner, loser = (", then ".join(names) for names in (self.winner_configurations, self.loser_configurations))
        return f"{self.winner}: {winner}; {self.loser}: {loser}"

    def sentence(self) -> str:
        moved = ""
        if self.factor is not None:
            moved = f"; {number_text(self.factor)}x the crossover without tuning"
        elif self.moved_from is not None:
            moved = f"; untuned, they cross at {position_text(self.moved_from, self.unit)}"
        elif self.moved_status in PLAINLY:
            moved = f"; {PLAINLY[self.moved_status]}"
        return f"Tuned ({self.configurations()}): {self.crossing()}{moved}"

    def _measured(self) -> str:
        return "compared" if self.compared_at else "measured"

    def everywhere(self) -> str:
        if self.compared_at:
            return points_text([point for point in self.compared_at if point not in self.unsure], self.unit)
        return super().everywhere()

    def summary_of(self, alike: Sequence[Self]) -> str:
        points = sorted({point for answer in alike for point in answer.compared_at})
        compared = f" (compared at {points_text(points, self.unit)})" if points else ""
        return f"Tuned: {super().summary_of(alike)}{compared}"

    def where(self) -> list[str]:
        if self.compared_at and self.status not in LEADS:
            return [f"compared at {points_text(self.compared_at, self.unit)}"]
        return super().where()

    def is_changed_by_tuning(self) -> bool:
        """Whether tuning changes the crossover's status, or moves it significantly."""
        if self.status not in (*CROSSED, *LEADS):
            return False
        if self.status != self.moved_status:
            return True
        low, high = self.ends
        return self.moved_from is not None and not (low or 0) <= self.moved_from <= (high or math.inf)


def best_answers(tables: RunTables, x_axis: str, together: int) -> Sequence[Best | Setting]:
    """The crossovers of accelerators with the CPU, both in their fastest configurations, and how far tuning moves them.

    Without such crossovers, the answers are the speed-ups that tuning gives each device.
    """
    axes = best_axes(x_axis)
    varied_axes = varying(tables.cells, axes)
    headlines = headline_rows(tables.crossovers)
    at_best = tables.crossovers[tables.crossovers["pair"] == BEST]
    candidates = candidates_of(tables)
    if at_best.empty:
        return _fastest_candidates(tables, candidates, varied_axes, x_axis, together)
    return [
        _best_answer(row, candidates, rows_with(headlines, [*axes, "contender"], row), varied_axes)
        for row in records(at_best)
    ]


def _fastest_candidates(
    tables: RunTables, candidates_of_study: pd.DataFrame, varied_axes: Sequence[str], x_axis: str, together: int
) -> list[Setting]:
    """The speed-up of a device's fastest candidate over the baseline, at the largest point with several candidates."""
    answers = []
    along = X_AXES[x_axis]
    for _, candidates in candidates_of_study.dropna(subset=["step_time_s"]).groupby(
        [*best_axes(x_axis), "device"], sort=False
    ):
        counted = candidates[candidates["counts"] & candidates.duplicated(along, keep=False)]
        at_largest = counted[counted[along] == counted[along].max()].sort_values("step_time_s")
        if at_largest.empty:
            continue
        is_eager = at_largest["execution"] == BASELINE_SETTINGS["execution"]
        is_plain = is_eager & (at_largest["side"] == at_largest["device"])
        rows = records(at_largest)
        times = [tables.means[cell_key({**row, "device": row["side"]})]["time"] for row in rows]
        choice = choose(times, next(iter(np.flatnonzero(is_plain).tolist()), None), together)
        best, baseline = rows[choice.chosen], rows[choice.baseline]
        names = candidate_names([best, baseline], candidates)
        answers.append(
            Setting(
                machine=best["machine"],
                series=name_by(best, varied_axes),
                **compared_ratio(choice.ratio),
                device=side_word(best["device"]),
                place=place_on(best, x_axis),
                winner=names[0],
                loser=names[1],
                **basis(min(best["trials"], baseline["trials"]), pd.DataFrame([best, baseline])),
            )
        )
    return answers


def _best_answer(
    row: dict[str, Any], candidates_of_study: pd.DataFrame, headlines: pd.DataFrame, varied_axes: Sequence[str]
) -> Best:
    candidates = rows_with(candidates_of_study, best_axes(row["x_axis"]), row)
    chosen = candidates[candidates["chosen"] & candidates["counts"]].sort_values(X_AXES[row["x_axis"]])
    sides = {
        side: _fastest_of(chosen[chosen["device"] == row[side]], candidates, row) for side in ("baseline", "contender")
    }
    contender, baseline = side_word(row["contender"]), side_word(row["baseline"])
    columns = crossover_fields(row, contender, baseline)
    times = chosen.pivot_table(index=row["x_axis"], columns="device", values="step_time_s")
    if {row["baseline"], row["contender"]} <= set(times):
        speedups = (times[row["baseline"]] / times[row["contender"]]).dropna()
        columns |= reach_of_lead(row, speedups, contender, baseline)
        if len(speedups) < candidates[row["x_axis"]].nunique():
            columns["compared_at"] = speedups.index.tolist()
    winner, loser = ("baseline", "contender") if columns["winner"] == baseline else ("contender", "baseline")
    plain = _plainest(headlines, row["precision"].partition("+")[0])
    both_cross = plain["status"] == row["status"] == "bracketed"
    about = {
        **columns,
        "main": True,
        "series": name_by(row, varied_axes),
        "caveats": [*columns["caveats"], *flags_of(chosen)],
        "winner_configurations": sides[winner],
        "loser_configurations": sides[loser],
        "moved_status": plain["status"],
        "moved_from": plain["crossover"],
        "factor": row["crossover"] / plain["crossover"] if both_cross else None,
    }
    return Best(**about)


def _plainest(headlines: pd.DataFrame, precision: str) -> dict[str, Any]:
    wanted = BASELINE_AXES | {"precision": precision}
    rows = records(headlines)
    nearest = max(rows, key=lambda row: sum(row[axis] == value for axis, value in wanted.items()), default=None)
    return nearest or {"status": None, "crossover": None}


def _fastest_of(chosen: pd.DataFrame, candidates: pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """The names of a device's fastest candidates within the bracket, else at the smallest and the largest size."""
    shown = chosen[in_bracket(chosen[row["x_axis"]], row)]
    if shown.empty:
        shown = pd.concat([chosen.head(1), chosen.tail(1)])
    return list(dict.fromkeys(candidate_names(records(shown), candidates)))


def candidate_names(shown: Sequence[dict[str, Any]], candidates: pd.DataFrame) -> list[str]:
    """The name of each row: 'eager on 1 core', 'eager on all cores'. Cores are named if a row has a number of them."""
    axes = [axis for axis in CANDIDATE_AXES if axis != "device"]
    named = [axis for axis in axes if axis == "execution" or candidates[axis].nunique() > 1]
    on_cores = any(threads_of_side(row["side"]) for row in shown)
    cores = [side_word(row["side"]).partition(" ")[2] or "on all cores" if on_cores else "" for row in shown]
    return [f"{name_by(row, named)} {on}".strip() for row, on in zip(shown, cores, strict=True)]

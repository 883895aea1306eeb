"""Answers on the number of steps after which the faster side has made up for its longer start-up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd

from crossover.compare.intervals import columns_of, interval_of
from crossover.config.words import BASELINE_SETTINGS, CPU_THREADS, series_axes
from crossover.tables.frames import first_row, records
from crossover.tables.labels import place_on, varying
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import cores_text, seconds_text
from crossover.topics.answer import Answer
from crossover.topics.caveats import basis
from crossover.topics.crossovers.sides import (
    crossovers_to_answer,
    has_several_accelerators,
    series_name,
    side_names,
    speedups_of,
    with_needed_columns,
)
from crossover.topics.wording import amount_text, ends_text, range_text


@dataclass(frozen=True, kw_only=True)
class Payback(Answer):
    """The number of steps after which the side with the faster step is ahead, start-up included."""

    kind = "payback"
    in_sentence = ("winner", "loser", "place")

    winner: str
    loser: str
    steps: float
    steps_low: float | None
    steps_high: float | None
    place: str
    startup_s: float
    """The absolute difference between the start-ups of both sides."""

    def sentence(self) -> str:
        loser = f" of {self.loser}" if self.loser not in ("CPU", "GPU") else ""
        is_at_once, low, high = self.steps < 1, self.steps_low, self.steps_high
        about = "~" if low is None else ""
        when = "from the first step on" if is_at_once else f"after {about}{amount_text(self.steps, 'steps')} steps"
        interval = ""
        if low is not None and (high is None or high >= 1):
            interval = f" (95 % CI {ends_text(low, high, 'steps')}{' steps' if is_at_once else ''})"
        start_up = f"{seconds_text(self.startup_s)} {'less' if is_at_once else 'more'} start-up"
        return f"{self.winner} ahead{loser} {when} at {self.place}{interval}: {start_up}"

    def summary_of(self, alike: Sequence[Self]) -> str:
        steps = range_text([answer.steps for answer in alike], "steps")
        return f"{self.winner} ahead after {steps} at {self.place}"


def payback_answers(tables: RunTables, x_axis: str, asked: Collection[str], *, has_run: bool) -> list[Payback]:
    """The number of steps after which the side with the faster step has made up for its longer start-up.

    There is one answer for each main crossover in time, of the pairs that the study refines (`asked`), at the largest
    point. It is a main answer if the study has a run (`has_run`).
    """
    crossovers, main = crossovers_to_answer(tables, asked)
    needed = with_needed_columns(tables)
    varied_axes, with_product_names = varying(tables.cells, series_axes(x_axis)), has_several_accelerators(crossovers)
    answers = []
    for row in records(crossovers[crossovers.index.isin(main) & (crossovers["cost"] == "time")]):
        for speedup in records(speedups_of(row, tables).tail(1)):
            sides, steps = side_names(row, with_product_names), speedup["payback_steps"]
            winner, loser = sides if speedup["ratio"] > 1 else reversed(sides)
            if steps is not None and (steps >= 1 or has_run):
                if x_axis == CPU_THREADS:
                    place = cores_text(speedup["baseline_threads"], "CPU core")
                else:
                    place = place_on(first_row(tables.rows_with("cells", CELL_AXES, speedup)), x_axis)
                answers.append(
                    Payback(
                        main=has_run,
                        machine=row["machine"],
                        series=series_name(row, varied_axes),
                        **columns_of(interval_of(speedup, "payback_steps{}"), "steps{}"),
                        winner=winner,
                        loser=loser,
                        place=place,
                        startup_s=abs(speedup["startup_s"] - speedup["baseline_startup_s"]),
                        **basis(speedup["trials"], _cells_of_speedup(speedup, needed)),
                    )
                )
    return answers


def _cells_of_speedup(speedup: Mapping[str, Any], tables: RunTables) -> pd.DataFrame:
    """The cells of a ratio on one machine: for a pair of devices, of both; else of its device in all settings."""
    if speedup["pair"] == "device":
        same = tables.rows_with("cells", [axis for axis in CELL_AXES if axis != "device"], speedup)
        return same.loc[same["device"].isin([speedup["device"], speedup["baseline"]])]
    return tables.rows_with("cells", [axis for axis in CELL_AXES if axis not in BASELINE_SETTINGS], speedup)

"""The answers to a study's question, which the report and its summary give alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.analysis.comparisons import headline_rows
from crossover.analysis.cores_words import cores_view
from crossover.analysis.loading import loading_answers
from crossover.analysis.naming import varying
from crossover.analysis.opening import short_study_answers
from crossover.analysis.quality_words import quality_answer
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.sentences import answer, answer_at_one_size, line_words, merged
from crossover.analysis.tables import LINE_AXES, records, rows_with, with_ok_times
from crossover.stages import CROSSOVER_FIGURES

NOT_MEASURED = "Not measured here."


def study_answers(name: str, spec: Mapping[str, Any], tables: ReportTables) -> list[tuple[str, str]]:
    """All answers of a study, each after the lines that it is of (empty: of all); `spec` is the study's file."""
    answers = timed_answers(name, spec, tables)
    if tables.cores_worth is not None and len(cores := tables.cores_worth[tables.cores_worth["study"] == name]):
        answers += cores_view(cores)["answers"]
    if tables.quality is not None and len(trained := tables.quality[tables.quality["study"] == name]):
        answers += [("", quality_answer(trained))]
    return answers or short_study_answers(name, spec, tables) or [("", NOT_MEASURED)]


def timed_answers(name: str, spec: Mapping[str, Any], tables: ReportTables) -> list[tuple[str, str]]:
    """Those of its times on all cores."""
    headlines = headline_rows(tables.crossovers[tables.crossovers["study"] == name])
    trials = tables.measurements[tables.measurements["study"] == name]
    cells = tables.cells[tables.cells["study"] == name]
    several = varying(headlines, LINE_AXES)
    return [
        *[("", text) for text in _loading(trials, spec)],
        *merged((line_words(row, several), text) for row in records(headlines) if (text := _answer(row, cells, spec))),
    ]


def _loading(trials: pd.DataFrame, spec: Mapping[str, Any]) -> list[str]:
    """What loading takes of a step, where no crossover is the question: its figure shows that by size."""
    return [] if asks_for_crossovers(spec) else loading_answers(with_ok_times(trials), spec["steps_per_run"])


def asks_for_crossovers(spec: Mapping[str, Any]) -> bool:
    """Whether a study asks from which size on one device beats another."""
    return not CROSSOVER_FIGURES.isdisjoint(spec["figures"])


def _answer(row: dict[str, Any], cells: pd.DataFrame, spec: Mapping[str, Any]) -> str | None:
    """The answer for a line: its crossover where that is the question, or how much faster one side is at one size."""
    if asks_for_crossovers(spec):
        return answer(row)
    line = rows_with(cells, LINE_AXES, row).dropna(subset=["step_time_s"])
    seconds = dict(zip(line["device"], line["step_time_s"], strict=False))
    at_one_size = len(line) == len(seconds)
    return answer_at_one_size(row, seconds) if at_one_size else None

"""The answers to a study's question, which the report and its summary give alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.analysis.comparisons import headline_rows
from crossover.analysis.cores_words import cores_view
from crossover.analysis.loading import loading_answers
from crossover.analysis.machine_pairings import SHARED_AXES
from crossover.analysis.naming import varying
from crossover.analysis.opening import short_study_answers
from crossover.analysis.quality_words import quality_answer
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.sentences import answer, answer_at_one_size, line_words, merged
from crossover.analysis.tables import LINE_AXES, records, rows_with, with_ok_times
from crossover.stages import asks_for_crossovers

NOT_MEASURED = "Not measured here."


def study_answers(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """All answers of a study, each after the lines that it is of (empty: of all).

    `spec` is the study's file, `own` are its own tables.
    """
    answers = timed_answers(spec, own)
    if own.cores_worth is not None:
        answers += cores_view(own.cores_worth)["answers"]
    if own.quality is not None:
        answers += [("", quality_answer(own.quality))]
    return answers or short_study_answers(spec, own) or [("", NOT_MEASURED)]


def timed_answers(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """Those of its times on all cores."""
    headlines = headline_rows(own.crossovers)
    # A sentence names the machine itself.
    several = varying(headlines, SHARED_AXES)
    return [
        *[("", text) for text in _loading(own.measurements, spec)],
        *merged(
            (line_words(row, several), text) for row in records(headlines) if (text := _answer(row, own.cells, spec))
        ),
    ]


def _loading(trials: pd.DataFrame, spec: Mapping[str, Any]) -> list[str]:
    """What loading takes of a step, where no crossover is the question: its figure shows that by size."""
    return [] if asks_for_crossovers(spec["figures"]) else loading_answers(with_ok_times(trials), spec["steps_per_run"])


def _answer(row: dict[str, Any], cells: pd.DataFrame, spec: Mapping[str, Any]) -> str | None:
    """The answer for a line: its crossover where that is the question, or how much faster one side is at one size."""
    if asks_for_crossovers(spec["figures"]):
        return answer(row)
    line = rows_with(cells, LINE_AXES, row).dropna(subset=["step_time_s"])
    seconds = dict(zip(line["device"], line["step_time_s"], strict=False))
    at_one_size = len(line) == len(seconds)
    return answer_at_one_size(row, seconds) if at_one_size else None

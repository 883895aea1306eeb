"""The answers to a study's question, which the report and its summary give alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.answers.cores_words import cores_answers
from crossover.answers.naming import varying
from crossover.answers.quality_words import quality_answer
from crossover.answers.sentences import answer, answer_at_one_size, line_words, merged
from crossover.answers.short_comparisons import asked_answers
from crossover.plan.stages import asks_for_crossovers
from crossover.report.opening import missing_words, short_study_answers
from crossover.report.report_tables import ReportTables
from crossover.statistics.comparisons import headline_rows
from crossover.statistics.loading import loading_answers
from crossover.statistics.machine_pairings import SHARED_AXES
from crossover.tables.frames import LINE_AXES, records, rows_with, with_ok_times


def study_answers(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """All answers of a study, each after the lines that it is of (empty: of all), and that there is none.

    `spec` is the study's file, `own` are its own tables.
    """
    found = answers_at_length(spec, own) or [*short_study_answers(spec, own)]
    return found or [("", f"{missing_words(spec, own.cells)}.")]


def answers_at_length(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """The same as far as there are any, first those to the study's own question."""
    answers = [] if own.cores_worth is None else cores_answers(own.cores_worth)
    answers += _asked(spec, own) + _of_lines(spec, own)
    if own.quality is not None:
        answers.append(("", quality_answer(own.quality)))
    return answers


def _asked(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """What the study's figures ask, and what loading takes of a step, where no crossover is the question."""
    if asks_for_crossovers(spec["figures"]):
        return []
    trials = with_ok_times(own.measurements)
    return [
        *[(machine, f"{text}.") for machine, text in asked_answers(trials, spec)],
        *[("", text) for text in loading_answers(trials, spec["steps_per_run"])],
    ]


def _of_lines(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, str]]:
    """How the devices compare on each line."""
    headlines = headline_rows(own.crossovers)
    # A sentence names the machine itself.
    several = varying(headlines, SHARED_AXES)
    found = ((line_words(row, several), _answer(row, own.cells, spec)) for row in records(headlines))
    return merged((line, text) for line, text in found if text)


def _answer(row: dict[str, Any], cells: pd.DataFrame, spec: Mapping[str, Any]) -> str | None:
    """The answer for a line: its crossover where that is the question, or how much faster one side is at one size."""
    if asks_for_crossovers(spec["figures"]):
        return answer(row)
    line = rows_with(cells, LINE_AXES, row).dropna(subset=["step_time_s"])
    seconds = dict(zip(line["device"], line["step_time_s"], strict=False))
    at_one_size = len(line) == len(seconds)
    return answer_at_one_size(row, seconds) if at_one_size else None

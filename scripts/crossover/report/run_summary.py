"""A run in short: its answers as a table, and as the lines that a run ends with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import pandas as pd

from crossover.answers.answers import study_answers
from crossover.answers.claim_lines import claim_lines
from crossover.report.report_tables import ReportTables
from crossover.tables.frames import records

SUMMARY_COLUMNS = {
    "study": "study",
    "question": "what it asks",
    "line": "what of the study the answer is of: protocol, batch size and so on; empty: all",
    "answer": "the answer, with its 95 % interval where there is one",
    "published": "the published statements on the question, each with its value, the verdict and why; on its first row",
    "trials": "trials and trainings of the study that have a row; on its first row",
    "flagged": "trials of it that carry a flag; on its first row",
}
"""The columns of summary.csv; what is of a whole study stands on its first row alone, so that it counts once."""

ANSWER_WIDTH = 200
"""Most characters of an answer on the terminal."""
MOST_ANSWERS = 6
"""Most answers on the terminal."""


def summary_table(studies: Mapping[str, Mapping[str, Any]], tables: ReportTables) -> pd.DataFrame:
    """One row an answer."""
    rows = []
    for name, spec in studies.items():
        own = tables.of_study(name)
        of_study: dict[str, Any] = {
            "published": " | ".join(claim_lines(own.claims, spec["published"])),
            "trials": sum(map(len, own.measured)),
            "flagged": int(own.measurements["flags"].map(_any).sum()),
        }
        for line, text in study_answers(spec, own):
            rows.append({"study": name, "question": spec["question"], "line": line, "answer": text} | of_study)
            of_study = {}
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS)).astype({"trials": "Int64", "flagged": "Int64"})


def _any(flags: Any) -> bool:
    return flags is not None and len(flags) > 0


def closing_lines(answers: pd.DataFrame, problems: Mapping[str, Any], path_to_report: str, path_to_summary: str) -> str:
    """The lines that a run ends with: its answers, where the report is, and what to pass on.

    `answers` are those of `summary_table`, `problems` what `problems_view` gives.
    """
    lines = [_line(row) for row in records(answers.head(MOST_ANSWERS))]
    if len(answers) > MOST_ANSWERS:
        lines.append(f"and {len(answers) - MOST_ANSWERS} answers more in the report")
    if problems["partial"]:
        lines.insert(0, f"Partial: {problems['partial']['all']}.")
    lines += [
        f"Report: {path_to_report} (one file; open it in a browser)",
        f"To pass on: {path_to_summary}; to cite: CITATION.cff",
    ]
    return "\n".join(lines) + "\n"


def _line(row: Mapping[str, Any]) -> str:
    """An answer on the terminal, without where it was measured."""
    where = f" ({row['line']})" if row["line"] else ""
    text = re.sub(r" \(measured on either side:[^)]*\)", "", row["answer"])
    return shorten(f"{row['study']}{where}: {text}", ANSWER_WIDTH, placeholder=" ...")

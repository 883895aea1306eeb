"""A run in short: its answers as Markdown to paste into an issue, as a table, and as the lines that a run ends with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from textwrap import shorten
from typing import Any

import pandas as pd

from crossover.analysis.answers import study_answers
from crossover.analysis.claim_words import claim_rows
from crossover.analysis.effort_words import short_effort_words
from crossover.analysis.machines import machines
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.side_by_side import machine_notes
from crossover.analysis.tables import records
from crossover.analysis.wording import machine_words
from crossover.records import HERE

SUMMARY_COLUMNS = {
    "study": "study",
    "question": "what it asks",
    "line": "what of the study the answer is of: protocol, batch size and so on; empty: all",
    "answer": "the answer, with its 95 % interval where there is one",
    "published": "the published statements on it, each with its verdict",
    "trials": "trials and trainings of the study that have a row",
    "flagged": "trials of it that carry a flag",
}
"""The columns of summary.csv."""

MACHINE_FACTS = (
    "CPU",
    "usable physical cores",
    "threads of torch",
    "GPU driver",
    "CUDA",
    "torch",
    "Python",
    "Crossover",
)
"""What the Markdown says of a machine; names of hosts are left out, since it is made for passing on."""

ANSWER_WIDTH = 200
"""Most characters of an answer on the terminal."""
MOST_ANSWERS = 6
"""Most answers on the terminal."""


def summary_table(studies: Mapping[str, Mapping[str, Any]], tables: ReportTables) -> pd.DataFrame:
    """One row an answer."""
    rows = [
        {
            "study": name,
            "question": spec["question"],
            "line": line,
            "answer": text,
            "published": _verdicts(own.claims),
            "trials": sum(map(len, own.measured)),
            "flagged": int(own.measurements["flags"].map(_any).sum()),
        }
        for name, spec in studies.items()
        for own in [tables.of_study(name)]
        for line, text in study_answers(spec, own)
    ]
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


def _any(flags: Any) -> bool:
    return flags is not None and len(flags) > 0


def _verdicts(claims: pd.DataFrame) -> str:
    return "; ".join(
        f"{row['statement']}: {row['verdict_words']}{machine_words('on', row.get('machine', HERE))}"
        for row in claim_rows(claims)
    )


def summary_markdown(
    answers: pd.DataFrame, problems: Mapping[str, Any], tables: ReportTables, facts: Mapping[str, Any]
) -> str:
    """The answers with verdicts, hardware, versions, trials, flags, and how to reproduce them.

    `answers` are those of `summary_table`, `problems` what `problems_view` gives.
    """
    lines = ["## When does the GPU pay off?", ""]
    if problems["partial"]:
        lines += [f"**This is partial: {problems['partial']['all']}.**", ""]
    lines += ["| question | answer | published |", "|---|---|---|"]
    for (question, published), rows in answers.groupby(["question", "published"], sort=False):
        texts = [f"{line}: {text}" if line else text for line, text in zip(rows["line"], rows["answer"], strict=True)]
        lines.append(f"| {escaped(question)} | {'<br>'.join(map(escaped, texts))} | {escaped(published)} |")
    lines.append("")
    for machine in machines(tables.measured):
        known = [f"{words} {machine[words]}" for words in MACHINE_FACTS if words in machine]
        lines.append(f"- Measured on: {escaped(machine['device'])}; {escaped(', '.join(known))}")
    lines += [f"- {escaped(note)}" for note in machine_notes(tables.measurements)]
    listed = "; ".join(problems["counts"]) or "nothing"
    studies = answers["study"].unique()
    merged = facts["effort"] is None  # each run had its own
    lines += [
        *([] if merged else [f"- Trials a cell: {facts['trials']} (further ones where a crossover was refined)"]),
        f"- Effort of a trial: {escaped(_effort(facts))}",
        f"- Missing, failed or flagged: {escaped(listed)}",
        *([] if merged else [f"- To reproduce: {_command(studies, facts)}"]),
        f"- Made {facts['made_at']}",
    ]
    return "\n".join(lines) + "\n"


def _effort(facts: Mapping[str, Any]) -> str:
    known = facts.get("provenance") or {"effort": [], "studies": {}}
    return short_effort_words(known["effort"], facts["effort"], known["studies"])


def _command(studies: Iterable[str], facts: Mapping[str, Any]) -> str:
    """The run's own command, where it is known, and the commit; else what of its config says most."""
    known = facts.get("provenance")
    if known and known["run"]:
        commit = known["code"]["code_version"]
        return f"`{known['run']['command']}`{f', commit {commit}' if commit else ''}"
    config = f'"studies=[{", ".join(studies)}]" trials={facts["trials"]} seed={facts["seed"]}'
    command = f"snakemake --cores 1 --resources gpu=1 --config {config} cpu_threads={facts['cpu_threads']}"
    return f"`{command}`"


def escaped(text: object) -> str:
    """Text as Markdown shows it literally, in a table's cell too."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~@&$])", r"\\\1", str(text)).split())


def _line(row: Mapping[str, Any]) -> str:
    """An answer on the terminal, without where it was measured."""
    where = f" ({row['line']})" if row["line"] else ""
    text = re.sub(r" \(measured on either side:[^)]*\)", "", row["answer"])
    return shorten(f"{row['study']}{where}: {text}", ANSWER_WIDTH, placeholder=" ...")


def closing_lines(answers: pd.DataFrame, problems: Mapping[str, Any], path_to_report: str, path_to_summary: str) -> str:
    """The lines that a run ends with: its answers, where the report is, and what to pass on; tables as above."""
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

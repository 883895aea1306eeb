"""A run in short, as Markdown to paste into an issue: a line a question, and what the answers rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crossover.answers.claim_lines import claim_lines
from crossover.answers.effort_words import short_effort_words
from crossover.answers.memory_words import memory_of_devices
from crossover.answers.side_by_side import machine_notes
from crossover.answers.trust import trust_words
from crossover.report.machines import machines
from crossover.report.opening import missing_words, short_study_answers
from crossover.report.report_tables import ReportTables
from crossover.tables.merged_provenance import completeness_notes, joined_runs, merged_views

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
"""What is said of a machine; names of hosts are left out, since it is made for passing on."""


def summary_markdown(
    studies: Mapping[str, Mapping[str, Any]],
    tables: ReportTables,
    problems: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> str:
    """The answers beside what was published, then hardware, trust, memory, and how to reproduce them.

    `problems` is what `problems_view` gives, and `facts` says how and when the report was made.
    """
    runs = joined_runs(facts)
    lines = ["## When does the GPU pay off?", "", *_warnings(problems)]
    lines += ["| question | answer | what was published, whether it holds, and why |", "|---|---|---|"]
    lines += [_row(spec, tables.of_study(name)) for name, spec in studies.items()]
    notes = [
        *_hardware(tables),
        *machine_notes(tables.measurements),
        *[f"Trust: {'; '.join(map(str, said))}" for said in [trust_words(tables.cells)] if said],
        f"Missing or failed: {'; '.join(problems['lost']) or _nothing(runs)}",
        *completeness_notes(runs),
        *memory_of_devices({name: tables.of_study(name).measurements for name in studies}),
        f"Effort of a trial: {_effort(facts)}",
    ]
    lines += ["", *(f"- {escaped(note)}" for note in notes)]
    lines += [f"- {line}" for line in _reproducing(studies, facts, is_partial=problems["partial"] is not None)]
    return "\n".join([*lines, f"- Made {facts['made_at']}"]) + "\n"


def _nothing(runs: Sequence[Mapping[str, Any]]) -> str:
    return "nothing among the rows that were joined" if runs else "nothing"


def escaped(text: object) -> str:
    """Text as Markdown shows it literally, in a table's cell too."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>#|~@&$])", r"\\\1", str(text)).split())


def in_code(text: str) -> str:
    """Text as code, whatever it holds, on one line."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    words = " ".join(text.splitlines())
    return f"{fence} {words} {fence}" if len(fence) > 1 else f"{fence}{words}{fence}"


def _warnings(problems: Mapping[str, Any]) -> list[str]:
    """What stands above the answers of a run that is not whole."""
    said = [f"This is partial: {problems['partial']['all']}."] if problems["partial"] else []
    if not problems["timed"]:
        said.append("No trial has a time, so there is no answer yet.")
    return [f"**{escaped(' '.join(said))}**", ""] if said else []


def _row(spec: Mapping[str, Any], own: ReportTables) -> str:
    """A question with its answers, each after the lines that it is of, and what was published."""
    found = [f"{line}: {text}" if line else text for line, text in short_study_answers(spec, own)]
    answers = found or [missing_words(spec, own.cells)]
    cells = [[spec["question"]], answers, claim_lines(own.claims, spec["published"])]
    return f"| {' | '.join('<br>'.join(map(escaped, cell)) for cell in cells)} |"


def _hardware(tables: ReportTables) -> list[str]:
    found = []
    for machine in machines(tables.measured):
        known = [f"{words} {machine[words]}" for words in MACHINE_FACTS if words in machine]
        found.append(f"Measured on: {machine['device']}; {', '.join(known)}")
    return found


def _effort(facts: Mapping[str, Any]) -> str:
    known = facts.get("provenance") or {"effort": [], "studies": {}}
    return short_effort_words(known["effort"], facts["effort"], known["studies"])


def _reproducing(studies: Iterable[str], facts: Mapping[str, Any], *, is_partial: bool) -> list[str]:
    """The commands of the run, or of each of merged runs, where they are known; else what of the config says most."""
    known = facts.get("provenance")
    if known and known["runs"]:
        return [f"To reproduce {_of_merged(view)}" for view in merged_views(known["runs"])]
    if not known or not known["run"]:
        config = f'"studies=[{", ".join(studies)}]" trials={facts["trials"]} seed={facts["seed"]}'
        command = f"snakemake --cores 1 --resources gpu=1 --config {config} cpu_threads={facts['cpu_threads']}"
        return [f"To reproduce: {in_code(command)}"]
    commands = _commands(known["rerun"], known["code"]["code_version"], known["measured_by"])
    if is_partial:
        return [f"To make this again: {commands}; without its target `partial_report` it measures what is missing"]
    return [f"To reproduce: {commands}"]


def _of_merged(view: Mapping[str, Any]) -> str:
    name = escaped(view["name"])
    if not view["command"]:
        doubt = escaped(view["doubt"] or "its provenance.json names no command")
        return f"{name}: not known, since {doubt}; column `command` of measurements.parquet has each trial's"
    doubt = f" ({escaped(view['doubt'])})" if view["doubt"] else ""
    return f"{name}: {_commands(view['rerun'] or [view['command']], view['commit'], view['measured_by'])}{doubt}"


def _commands(rerun: Sequence[str], commit: str | None, measured_by: Sequence[Mapping[str, Any]]) -> str:
    """The commands in one line, and what they do not bring back: changed files, and other code that measured."""
    told = in_code(" && ".join(rerun))
    if commit and commit.endswith("-dirty"):
        told += ", whose files were changed"
    measured = {row["code_version"] for row in measured_by if row.get("code_version")} - {commit}
    if measured:
        told += f"; measured with commit {escaped(', '.join(sorted(map(str, measured))))}"
    return told

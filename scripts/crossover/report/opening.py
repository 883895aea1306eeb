"""The first screen: who measured, how much trust it deserves, an answer for each question, and one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.cores_words import short_cores
from crossover.answers.memory_words import device_memories, fullest, verdict
from crossover.answers.quality_words import short_quality
from crossover.answers.short_answers import crossover_answers
from crossover.answers.short_comparisons import comparison_answers
from crossover.answers.short_verdicts import short_verdicts
from crossover.answers.trust import trust_words
from crossover.answers.wording import Answer
from crossover.config.words import BASELINE, DEVICES
from crossover.figures.style import device_label
from crossover.plan.stages import asks_for_crossovers
from crossover.report.report_figures import FigureFile
from crossover.report.report_tables import ReportTables
from crossover.tables.frames import on_all_cores, with_ok_times

LEAD = "times"
"""The kind of figure that leads, where a study with an answer has one."""


def opening(
    studies: Mapping[str, Mapping[str, Any]], tables: ReportTables, figures: Sequence[FigureFile]
) -> dict[str, Any]:
    """What the template of the first screen shows."""
    by_study = {name: tables.of_study(name) for name in studies}
    cards = [_card(name, spec, by_study[name]) for name, spec in studies.items()]
    memory = fullest([(name, one) for name, own in by_study.items() for one in device_memories(own.measurements)])
    timed = (tables.cells["trials"] > 0).any() or tables.quality is not None
    return {
        "cards": cards,
        "hardware": _hardware(tables),
        "trust": trust_words(tables.cells),
        "memory": memory and {"study": memory[0], "title": studies[memory[0]]["title"], "words": verdict(memory[1])},
        "lead": lead_figure([card["name"] for card in cards if card["answers"]], figures) if timed else None,
    }


def lead_figure(answered: Sequence[str], figures: Sequence[FigureFile]) -> FigureFile | None:
    """The times of the first study with an answer, else the first figure there is."""
    leading = {figure.study: figure for figure in figures if figure.path.stem == LEAD}
    return next((leading[name] for name in answered if name in leading), figures[0] if figures else None)


def _card(name: str, spec: Mapping[str, Any], own: ReportTables) -> dict[str, Any]:
    return {
        "name": name,
        "question": spec["question"],
        "answers": short_study_answers(spec, own),
        "verdicts": short_verdicts(own.claims, spec),
        "missing": missing_words(spec, own.cells),
    }


def short_study_answers(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, Answer]]:
    """All that a study answers, in a few words each, with what they are of; `own` are its own tables."""
    answers = _timed_answers(spec, own) if (own.cells["trials"] > 0).any() else []
    if own.quality is not None:
        answers.append(("", short_quality(own.quality)))
    return answers


def _timed_answers(spec: Mapping[str, Any], own: ReportTables) -> list[tuple[str, Answer]]:
    if own.cores_worth is not None:
        return short_cores(own.cores_worth)
    if asks_for_crossovers(spec["figures"]):
        return crossover_answers(own.crossovers, own.cells)
    return comparison_answers(with_ok_times(own.measurements), spec)


def missing_words(spec: Mapping[str, Any], cells: pd.DataFrame) -> str:
    """What stands where a study has no answer, without a full stop."""
    if len(cells):
        return str(trust_words(cells)[0]) if not (cells["trials"] > 0).any() else "No short answer: see the figures"
    return f"Not measured: for {', '.join(spec['devices'])} only" if spec.get("devices") else "Not measured here"


def _hardware(tables: ReportTables) -> list[str]:
    """'GPU (NVIDIA H200), 16 host threads', 'CPU (Intel Xeon), 32 threads': the accelerators first, each once."""
    measured = [on_all_cores(table) for table in (tables.measurements, tables.quality) if table is not None]
    columns = ["machine", "device", "device_name", "threads"]
    rows = pd.concat([table[columns].astype(object) for table in measured], ignore_index=True).drop_duplicates()
    # A trial that ended before it knew where it ran says less than the others on its device.
    full = rows[["device_name", "threads"]].notna().all(axis=1)
    rows = rows[full | ~full.groupby([rows["machine"], rows["device"]], dropna=False).transform("any")]
    rows = rows.sort_values("device", key=lambda column: column.map(_place), kind="stable")
    return list(dict.fromkeys(_side(row) for _, row in rows.iterrows()))


def _place(device: str) -> int:
    return len(DEVICES) if device == BASELINE else DEVICES.index(device)


def _side(row: pd.Series) -> str:
    """A device and the threads that torch had: of the CPU those that compute, else those that feed the accelerator."""
    label = device_label(row["device"], None if pd.isna(row["device_name"]) else row["device_name"], row["machine"])
    if pd.isna(row["threads"]):
        return label
    host = "" if row["device"] == BASELINE else "host "
    return f"{label}, {int(row['threads'])} {host}thread{'' if row['threads'] == 1 else 's'}"

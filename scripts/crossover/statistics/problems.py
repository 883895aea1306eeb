"""What of a run has no result, or one that deserves less trust: how much of it, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.answers.naming import varying
from crossover.answers.wording import listed
from crossover.config.words import FLAGS
from crossover.config.workloads import workload_traits
from crossover.figures.style import device_label, spaced
from crossover.statistics.unfinished import Unfinished
from crossover.tables.frames import CELL_AXES, records

FLAGGED = "flagged"

TO_FIT = "take a smaller size or batch size, or a device with more memory"

REMEDIES = {
    "failed": "mend what the line names and run the same command again: only what is missing is measured",
    "missing": "run the same command again: only what is missing is measured",
    "unreadable": "delete the file and run the same command again",
    "excluded": "run the same command again for other settings; delete the rows of another host or installation, or "
    "give them a results folder of their own",
    "invalid": "mend what the reason names, delete the row in the results folder, run again",
    "oom": f"a result; for a time, {TO_FIT}",
    "timeout": "a result; for a time, raise time_limit_s, or leave the size out",
    "unsupported": "a result; for a time, take a device that offers it, or leave it out",
    FLAGGED: "as the reason says",
}
"""The kinds of problems, the most urgent first, and what to do about each; a flag has a remedy of its own."""

PROBLEM_COLUMNS = {
    "study": "study that it happened in",
    "work": "what is concerned: trial, training, search (for the largest batch)",
    "kind": "what happened: " + ", ".join(REMEDIES),
    "cells": "the cells that are concerned",
    "count": "how many of the work",
    "reason": "why",
    "remedy": "what to do",
}
"""The columns of the table of problems."""

MOST_NAMED = 4
"""With more values than these, an axis is named by its ends."""


def rows_by_work(
    measurements: pd.DataFrame, quality: pd.DataFrame | None = None, searches: pd.DataFrame | None = None
) -> dict[str, pd.DataFrame]:
    """The rows of what a run's jobs did, by what it is; without what no study asks for."""
    works = {"trial": measurements, "training": quality, "search": searches}
    return {work: table for work, table in works.items() if table is not None}


def list_problems(
    tables: Mapping[str, pd.DataFrame], cells: pd.DataFrame, unfinished: Iterable[Unfinished] = ()
) -> pd.DataFrame:
    """One row for all cells of a study that share a kind of problem and its reason, but for numbers in that.

    `tables` are a run's rows by work; `unfinished` is what the config asks for and has no row in them.
    """
    found = [{**one.axes, "work": one.work, "kind": one.kind, "reason": one.reason} for one in unfinished]
    for work, table in tables.items():
        found += _not_ok(work, table)
    found += [*_flagged(tables["trial"]), *_differing(cells)]
    every = pd.concat([table.reindex(columns=CELL_AXES) for table in (*tables.values(), pd.DataFrame(found))])
    return pd.DataFrame(_grouped(found, every), columns=list(PROBLEM_COLUMNS))


def _not_ok(work: str, table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table[table["status"] != "ok"]
    reasons = rows["reason"].where(rows["reason"].notna(), "no reason was given")
    own = rows.reindex(columns=CELL_AXES).assign(work=work, kind=rows["status"], reason=reasons)
    return records(own)


def _flagged(measurements: pd.DataFrame) -> Iterator[dict[str, Any]]:
    rows = measurements[measurements["status"] == "ok"]
    for axes, flags in zip(records(rows[CELL_AXES]), rows["flags"], strict=True):
        for flag in () if flags is None else flags:
            yield {**axes, "work": "trial", "kind": FLAGGED, "reason": flag}


def _differing(cells: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The flag that no trial has, but a cell of several."""
    for axes, flags, trials in zip(records(cells[CELL_AXES]), cells["flags"], cells["trials"], strict=True):
        for _ in range(trials if "trials_differ" in flags else 0):
            yield {**axes, "work": "trial", "kind": FLAGGED, "reason": "trials_differ"}


def _grouped(found: Sequence[Mapping[str, Any]], every: pd.DataFrame) -> list[dict[str, Any]]:
    """The entries, the most urgent kind first and the most frequent reason first within it."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        key = (one["study"], one["work"], one["kind"], re.sub(r"\d[\d.,]*", "0", one["reason"]))
        groups.setdefault(key, []).append(one)
    axes_of = {study: varying(rows, CELL_AXES) for study, rows in every.groupby("study")}
    entries = [
        {"study": study, "work": work, "kind": kind, "cells": cells_words(group, axes_of[study]), "count": len(group)}
        | _told(kind, [str(one["reason"]) for one in group])
        for (study, work, kind, _), group in groups.items()
    ]
    order = list(REMEDIES)
    return sorted(entries, key=lambda entry: (order.index(entry["kind"]), -entry["count"]))


def _told(kind: str, reasons: Sequence[str]) -> dict[str, str]:
    if kind == FLAGGED:
        word = FLAGS[reasons[0]]
        return {"reason": f"{reasons[0]}: {word.meaning}", "remedy": word.remedy}
    alike = " (and others like it)" if len(set(reasons)) > 1 else ""
    return {"reason": f"{reasons[0]}{alike}", "remedy": REMEDIES[kind]}


def cells_words(group: Sequence[Mapping[str, Any]], axes: Collection[str]) -> str:
    """'CPU: 2, 3 and 5 linear layers, resident': devices and sizes of some cells, and what else their study varies."""
    values = {axis: list(dict.fromkeys(one[axis] for one in group if not pd.isna(one[axis]))) for axis in CELL_AXES}
    names = [values["workload"][0]] if "workload" not in axes else []
    unit = f" {workload_traits(names[0]).size_name}" if names else ""
    words = [f"{_listed(sorted(values['size']))}{unit}"]
    for axis in CELL_AXES:
        if axis in axes and axis not in ("study", "size", "device") and values[axis]:
            batch = "batch " if axis == "batch_size" else ""
            words.append(batch + _listed(sorted(values[axis]) if batch else values[axis]))
    return f"{_listed([device_label(device, None) for device in values['device']])}: {', '.join(words)}"


def _listed(values: Sequence[Any]) -> str:
    """'2, 3 and 5'; '2 to 4,096 (9 of them)' for many numbers, 'a, b, c, d and 3 more' for many words."""
    words = [f"{value:,}" if isinstance(value, int) else spaced(str(value)) for value in values]
    if len(words) > MOST_NAMED:
        if isinstance(values[0], int):
            return f"{words[0]} to {words[-1]} ({len(words)} of them)"
        return f"{', '.join(words[:MOST_NAMED])} and {len(words) - MOST_NAMED} more"
    return listed(words)

"""Problems of a run: missing, failed and flagged results, with their causes and remedies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.config.statuses import FLAGS, STATUSES
from crossover.config.workloads import workload_traits
from crossover.tables.finished import MissingResult
from crossover.tables.frames import records
from crossover.tables.labels import batch_words, device_label, varying
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import RunTables
from crossover.text import listed, spaced, with_unit

FLAGGED = "flagged"

REMEDIES = {
    "failed": "fix the cause given in the reason and run the same command again: only what is missing is measured",
    "missing": "run the same command again: only what is missing is measured",
    "unreadable": "delete the file and run the same command again",
    "excluded": "for other settings run the same command again; for another host or installation delete the rows or "
    "move them to a separate results folder",
    **{status: STATUSES[status].remedy for status in ("invalid", "oom", "timeout", "unsupported")},
    FLAGGED: "see the reason",
}
"""The remedy for each kind of problem, the most urgent first; those for flags are in FLAGS."""

CELL_FLAGS = ("drift", "trials_differ", "above_roof")
"""Flags that are listed by cell; the others are listed by trial."""

MOST_NAMED = 4
"""Maximum number of values of an axis that an entry lists."""


def list_problems(run: RunTables, missing: Iterable[MissingResult] = ()) -> list[dict[str, Any]]:
    """List the problems of a run; `missing` are planned results that the run lacks.

    The entries have the keys study, work (trial, training or search), kind, cells, count (of results), reason and
    remedy. Results of the same study, work and kind share an entry if their reasons differ at most in numbers.
    """
    tables = {
        "trial": run.measurements,
        "training": run.quality,
        "search": run.searched_cells,
    }
    named = [*CELL_AXES, "size_name", "size_label", "batch_name"]
    losses = [{**result.axes, "work": result.work, "kind": result.kind, "reason": result.reason} for result in missing]
    for work, table in tables.items():
        lost = table[table["status"] != "ok"].fillna({"reason": "no reason was given"})
        losses += records(lost.reindex(columns=named).assign(work=work, kind=lost["status"], reason=lost["reason"]))
    trials = run.measurements
    flagged = trials[trials["status"] == "ok"].explode("flag_names").dropna(subset="flag_names")
    flagged = flagged[~flagged["flag_names"].isin(CELL_FLAGS)]
    of_cells = run.cells.explode("flag_names", ignore_index=True)
    of_cells = of_cells[of_cells["flag_names"].isin(CELL_FLAGS)]
    for rows in (flagged, of_cells.loc[of_cells.index.repeat(of_cells["trials"])]):
        losses += records(rows[named].assign(work="trial", kind=FLAGGED, reason=rows["flag_names"]))
    rows_of_all = pd.concat([table.reindex(columns=CELL_AXES) for table in (*tables.values(), pd.DataFrame(losses))])
    return _grouped(losses, rows_of_all)


def _grouped(losses: Sequence[Mapping[str, Any]], rows_of_all: pd.DataFrame) -> list[dict[str, Any]]:
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for loss in losses:
        key = (loss["study"], loss["work"], loss["kind"], re.sub(r"\d[\d.,]*", "0", loss["reason"]))
        groups.setdefault(key, []).append(loss)
    axes_of = {study: varying(rows, CELL_AXES) for study, rows in rows_of_all.groupby("study")}
    entries = [
        {"study": study, "work": work, "kind": kind, "cells": _cells_label(group, axes_of[study]), "count": len(group)}
        | _reason(kind, [str(loss["reason"]) for loss in group])
        for (study, work, kind, _), group in groups.items()
    ]
    order = list(REMEDIES)
    return sorted(entries, key=lambda entry: (order.index(entry["kind"]), -entry["count"]))


def _reason(kind: str, reasons: Sequence[str]) -> dict[str, str]:
    if kind == FLAGGED:
        flag = FLAGS[reasons[0]]
        return {"reason": f"{reasons[0]}: {flag.meaning}", "remedy": flag.remedy}
    alike = " (and others like it)" if len(set(reasons)) > 1 else ""
    return {"reason": f"{reasons[0]}{alike}", "remedy": REMEDIES[kind]}


def _cells_label(group: Sequence[Mapping[str, Any]], axes: Collection[str]) -> str:
    """Devices, sizes and the other axes that the study varies, as in 'CPU: 2 and 5 linear layers, resident'."""
    values = {axis: list(dict.fromkeys(loss[axis] for loss in group if not pd.isna(loss[axis]))) for axis in CELL_AXES}
    names = [values["workload"][0]] if "workload" not in axes else []
    labels = list(dict.fromkeys(filter(pd.notna, (loss.get("size_label") for loss in group))))
    size_name = next(filter(pd.notna, (loss.get("size_name") for loss in group)), None)
    sizes = _listed(labels) if labels else _listed(sorted(values["size"]))
    words = [with_unit(sizes, size_name or workload_traits(names[0]).size_name) if names and not labels else sizes]
    for axis in CELL_AXES:
        if axis in axes and axis not in ("study", "size", "device") and values[axis]:
            text = _listed(sorted(values[axis]) if axis == "batch_size" else values[axis])
            words.append(batch_words(text, group[0]) if axis == "batch_size" else text)
    return f"{_listed([device_label(device, None) for device in values['device']])}: {', '.join(words)}"


def _listed(values: Sequence[Any]) -> str:
    """Values as text: '2, 3 and 5', or with many values '2 to 4,096 (9 of them)' or 'a, b, c, d and 3 more'."""
    words = [f"{value:,}" if isinstance(value, int) else spaced(str(value)) for value in values]
    if len(words) > MOST_NAMED:
        if isinstance(values[0], int):
            return f"{words[0]} to {words[-1]} ({len(words)} of them)"
        return f"{', '.join(words[:MOST_NAMED])} and {len(words) - MOST_NAMED} more"
    return listed(words)

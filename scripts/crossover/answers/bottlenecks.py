"""Answers on bottlenecks: the largest part of a step, the size up to which it remains the largest, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row, estimate, trials_columns, with_flags
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, series_axes
from crossover.statistics.bottlenecks import is_hidden_by_load
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import axis_label, name_by, side_word, varying
from crossover.tables.registry import REMEDIES, SPLIT, UNEXPLAINED
from crossover.text import percent_text

CAUSES = {part: words for part, words in SPLIT.items() if part != UNEXPLAINED}


def bottleneck_answers(cells: pd.DataFrame, x_axis: str) -> list[Row]:
    """The bottleneck at the first point of each series and device, with its remedy, unless load hides it.

    The first answer on an accelerator is a main one, or without any the first on the CPU.
    """
    x_axis = "size" if x_axis == CPU_THREADS else x_axis
    axes, along = series_axes(x_axis), X_AXES[x_axis]
    rows = on_all_cores(cells).dropna(subset=["bottleneck"]).sort_values(along, kind="stable")
    lines: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in records(rows):
        lines.setdefault(tuple(row[axis] for axis in (*axes, "device")), []).append(row)
    varied_axes = varying(cells, axes)
    answers = [_answer(line, varied_axes, x_axis) for line in lines.values()]
    main = next((row for row in answers if row["device"] != side_word(BASELINE)), next(iter(answers), None))
    return [row | {"main": row is main} for row in answers]


def _answer(rows: list[dict[str, Any]], varied_axes: list[str], x_axis: str) -> Row:
    first, last = rows[0], rows[-1]
    bottleneck = first["bottleneck"]
    trials = trials_columns(min(row["remedy_trials"] for row in rows))
    trials["caveats"] += first["remedy_flags"]
    about: Row = {
        "kind": "bottleneck",
        "machine": first["machine"],
        "series": name_by(first, varied_axes),
        "device": side_word(first["device"]),
        **with_flags(trials, pd.DataFrame(rows)),
    }
    if is_hidden_by_load(first):
        return {**about, "status": "hidden"}
    same = list(takewhile(lambda row: row["bottleneck"] == bottleneck, rows))
    is_found = bottleneck != UNEXPLAINED
    return {
        **about,
        "status": "not_found" if not is_found else "throughout" if len(same) == len(rows) else "up_to",
        "quantity": SPLIT[bottleneck],
        "reason": CAUSES.get(first["second_bottleneck"]) if is_found else _largest_explained(first),
        **estimate(first, f"{bottleneck}_share", axis_label({"x_axis": x_axis, "size_name": first["size_name"]})),
        "bracket_low": first[x_axis],
        "reach": same[-1][x_axis],
        "winner": REMEDIES.get(first["remedy"]),
        "factor": first["gain"],
        "factor_low": first["gain_low"],
        "factor_high": first["gain_high"],
        "loser": CAUSES.get(last["bottleneck"], UNEXPLAINED),
    }


def _largest_explained(row: Mapping[str, Any]) -> str | None:
    """The largest explained part of a step with its share, such as 'calling operators, 23 %'; None without one."""
    shares = {part: row[f"{part}_share"] or 0.0 for part in CAUSES}
    largest = max(shares, key=lambda part: shares[part])
    return f"{CAUSES[largest]}, {percent_text(shares[largest])}" if shares[largest] else None

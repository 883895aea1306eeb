"""Answers on bottlenecks: the bottleneck of each device of a series, up to which size it holds, and the remedy's
gain.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row, estimate, trials_columns
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, series_axes
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import axis_label, name_by, side_word, varying
from crossover.tables.registry import REMEDIES, SPLIT


def bottleneck_answers(cells: pd.DataFrame, x_axis: str) -> list[Row]:
    """One answer for each series and device with bottlenecks, from its smallest point on.

    The first on an accelerator is a main answer. The CPU is considered with all of its cores only.
    """
    x_axis = "size" if x_axis == CPU_THREADS else x_axis
    axes, along = series_axes(x_axis), X_AXES[x_axis]
    rows = on_all_cores(cells).dropna(subset=["bottleneck"]).sort_values(along, kind="stable")
    several = varying(cells, axes)
    answers = [_answer(records(line), several, x_axis) for _, line in rows.groupby([*axes, "device"], sort=False)]
    main = next((row for row in answers if row["device"] != side_word(BASELINE)), None)
    return [row | {"main": row is main} for row in answers]


def _answer(rows: list[dict[str, Any]], several: list[str], x_axis: str) -> Row:
    first, last = rows[0], rows[-1]
    cause = first["bottleneck"]
    changed = next((index for index, row in enumerate(rows) if row["bottleneck"] != cause), len(rows))
    reach = rows[changed - 1]
    return {
        "kind": "bottleneck",
        "machine": first["machine"],
        "series": name_by(first, several),
        "device": side_word(first["device"]),
        "status": "throughout" if changed == len(rows) else "up_to",
        "quantity": SPLIT[cause],
        "reason": SPLIT.get(first["second_bottleneck"]),
        **estimate(first, f"{cause}_share", axis_label({"x_axis": x_axis, "size_name": first["size_name"]})),
        "bracket_low": first[x_axis],
        "reach": reach[x_axis],
        "winner": REMEDIES.get(first["remedy"]),
        "factor": first["gain"],
        "loser": SPLIT[last["bottleneck"]],
        **trials_columns(min(row["remedy_trials"] for row in rows)),
    }

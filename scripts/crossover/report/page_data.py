"""The data behind the page's charts, its table of cells and its box for your own size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.naming import varying
from crossover.answers.prediction_words import WORDS
from crossover.answers.sentences import line_words, place
from crossover.config.words import HERE
from crossover.figures.style import PALETTE, PROTOCOL_WORDS, device_label, side_look
from crossover.report.page_columns import column_specs, metric_specs
from crossover.report.page_encoding import encoded, plain, script_json
from crossover.report.report_tables import ReportTables
from crossover.statistics.comparisons import headline_rows
from crossover.statistics.cost_model import EXPONENT_LIMITS, FLAT
from crossover.statistics.cost_models import MODEL_FIELDS
from crossover.statistics.predictions import CLEAR, FAR, LARGE_RESIDUAL, TOO_FAR
from crossover.tables.frames import CELL_AXES, DEVICE_LINE_AXES, LINE_AXES, records

PIECES = re.compile(r"[^ /=]*[ /=]?")
"""Parts of a command; what cells have in common falls into parts of its own."""


def page_data(studies: Mapping[str, Mapping[str, Any]], tables: ReportTables) -> str:
    """JSON for a script element: the cells in the order of their table, and what is known of their lines.

    `studies` maps names to their files. Columns are written as `encoded` gives them. A link to a cell names its axes;
    as a path of its rows, it has no level for the machine where none is named.
    """
    cells = tables.cells
    named = bool((cells["machine"] != HERE).any())
    columns = {name: encoded(plain(cells[name])) for name in cells.columns}
    labels = [device_label(row["device"], row["device_name"]) for row in records(cells[["device", "device_name"]])]
    return script_json(
        {
            "count": len(cells),
            "axes": [axis for axis in CELL_AXES if axis != "machine" or named],
            "cells": columns | {"device_label": encoded(labels)},
            "commands": _commands(tables),
            "columns": column_specs(cells.columns),
            "metrics": metric_specs(name for name in cells.columns if cells[name].notna().any()),
            "studies": {
                name: {"title": spec["title"], "x_axis": spec.get("x_axis", "size")} for name, spec in studies.items()
            },
            "crossovers": _crossovers(tables),
            "models": _models(tables),
            "words": {"protocol": PROTOCOL_WORDS, "prediction": WORDS},
            "limits": {
                "large_residual": LARGE_RESIDUAL,
                "clear": CLEAR,
                "flat": FLAT,
                "far": FAR,
                "too_far": TOO_FAR,
                "exponents": EXPONENT_LIMITS,
            },
            "colours": {"devices": {side: side_look(side)[0] for side in cells["device"].unique()}, "palette": PALETTE},
        }
    )


def _commands(tables: ReportTables) -> list[Any]:
    """The command of each cell's first trial, in parts: one column for each place in it."""
    first = tables.measurements.sort_values("trial", kind="stable").drop_duplicates(CELL_AXES)
    merged = tables.cells[CELL_AXES].merge(first[[*CELL_AXES, "command"]], on=CELL_AXES, how="left")
    parts = [[] if command is None else PIECES.findall(command)[:-1] for command in plain(merged["command"])]
    longest = max(map(len, parts), default=0)
    return [encoded([own[place] if place < len(own) else "" for own in parts]) for place in range(longest)]


def _places(table: pd.DataFrame, axes: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """Places of the rows that agree on the axes, by their values."""
    found = table.groupby(axes, sort=False).indices
    return {tuple(key): np.asarray(places).tolist() for key, places in found.items()}  # type: ignore[arg-type]


def _crossovers(tables: ReportTables) -> list[dict[str, Any]]:
    """Each crossover in time: a cell of the contender's line, and on each x axis its value, its 95 % set and words."""
    found = headline_rows(tables.crossovers)
    found = found[found["crossover"].notna()] if len(found) else found
    places = _places(tables.cells, DEVICE_LINE_AXES)
    return [
        {
            "study": row["study"],
            "cell": places[tuple(row[axis] for axis in DEVICE_LINE_AXES)][0],
            "on": {
                axis: [*plain(row[f"crossover_{axis}{end}"] for end in ("", "_low", "_high")), _words(row, axis)]
                for axis in ("size", "parameters")
                if row[f"crossover_{axis}"] is not None
            },
        }
        for row in records(found)
    ]


def _words(row: dict[str, Any], axis: str) -> str:
    return place(row, f"crossover_{axis}")


def _models(tables: ReportTables) -> list[dict[str, Any]]:
    """Each line's cost model by device, or why there is none, and the places of its cells."""
    places = _places(tables.cells, DEVICE_LINE_AXES)
    lines: dict[tuple[Any, ...], int] = {}
    several = {study: varying(own, LINE_AXES) for study, own in tables.cost_models.groupby("study", sort=False)}
    models = []
    for row in records(tables.cost_models):
        line = tuple(row[axis] for axis in LINE_AXES)
        models.append(
            {
                "study": row["study"],
                "line": lines.setdefault(line, len(lines)),
                "words": line_words(row, several[row["study"]]),
                "device": device_label(row["device"], row["device_name"]),
                "size_name": row["size_name"],
                "reason": row["reason"],
                "run_steps": row["run_steps"],
                **{field: row[field] for field in MODEL_FIELDS},
                "cells": places.get(tuple(row[axis] for axis in DEVICE_LINE_AXES), []),
            }
        )
    return models

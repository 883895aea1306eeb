"""Export a run for other tools: Frictionless data package, Bencher, github-action-benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.tables.columns import arrow_schema
from crossover.tables.frames import records
from crossover.tables.labels import name_by, side_word
from crossover.tables.run_tables import TABLES

NANOSECONDS = 1e9
TYPES = {"string": "string", "Int64": "integer", "Float64": "number", "boolean": "boolean", "bool": "boolean"}
"""Frictionless types of pandas types. Columns of other types have lists, which are strings in a CSV file."""
ARROW_TYPES = {"string": "string", "int64": "integer", "double": "number", "bool": "boolean"}
"""Frictionless types of Arrow types. Columns of other types are arrays."""


def data_package(folder: Path, made_at: str) -> dict[str, Any]:
    """Describe the CSV files in a results folder as a Frictionless data package (specs.frictionlessdata.io).

    `made_at` is the time of the report, such as "2026-11-23 10:00 UTC".
    """
    resources = [
        {
            "name": name.replace("_", "-"),
            "path": f"{name}.csv",
            "format": "csv",
            "encoding": "utf-8",
            "schema": {"fields": [_field(column, entry) for column, entry in columns.items()], "missingValues": [""]},
        }
        for name, columns in TABLES.items()
        if (folder / f"{name}.csv").is_file()
    ]
    created = made_at.removesuffix(" UTC").replace(" ", "T") + ":00Z"
    return {"name": "crossover-run", "title": "When does the GPU pay off?", "created": created, "resources": resources}


def measurement_schema() -> dict[str, Any]:
    """Describe the columns of measurements.parquet as a Frictionless Table Schema."""
    fields = []
    for column in arrow_schema():
        metadata = {key.decode(): value.decode() for key, value in column.metadata.items()}
        kind = ARROW_TYPES.get(str(column.type), "array")
        unit = {"unit": metadata["unit"]} if metadata["unit"] else {}
        fields.append({"name": column.name, "type": kind, "description": metadata["doc"], **unit})
    return {"fields": fields}


def _field(name: str, entry: Any) -> dict[str, Any]:
    field = {"name": name, "type": TYPES.get(entry.dtype, "string"), "description": entry.doc}
    if field["type"] == "boolean":
        field |= {"trueValues": ["True"], "falseValues": ["False"]}
    return field | ({"unit": entry.unit} if entry.unit else {})


def bencher(cells: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Latency in ns and throughput in 1/s, as in bencher.dev/docs/reference/bencher-metric-format."""
    return {
        name: {
            "latency": _metric(cell, "step_time{}_s", NANOSECONDS),
            "throughput": _metric(cell, "samples_per_s{}", 1),
        }
        for name, cell in _timed(cells)
    }


def _metric(cell: Mapping[str, Any], column: str, factor: float) -> dict[str, float]:
    ends = {"value": "", "lower_value": "_low", "upper_value": "_high"}
    return {
        name: cell[column.format(end)] * factor for name, end in ends.items() if cell[column.format(end)] is not None
    }


def action_benchmark(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Times in the format `customSmallerIsBetter` of github.com/benchmark-action/github-action-benchmark."""
    entries = []
    for name, cell in _timed(cells):
        entry = {"name": name, "unit": "ms/step", "value": cell["step_time_s"] * 1e3}
        if cell["step_time_high_s"] is not None:
            entry["range"] = f"{cell['step_time_low_s'] * 1e3:.4g} to {cell['step_time_high_s'] * 1e3:.4g}"
        entries.append(entry | {"extra": f"{cell['device_name']}, trials: {cell['trials']}"})
    return entries


def _timed(cells: pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cells with a time, by name. A name includes axes with a single value, so that it is the same in every run."""
    axes = ["size", "variant", "protocol", "batch_size", "precision", "execution", "machine"]
    for cell in records(cells.dropna(subset=["step_time_s"])):
        yield f"{cell['study']}: {name_by(cell, axes)}, {side_word(cell['device'])}", cell

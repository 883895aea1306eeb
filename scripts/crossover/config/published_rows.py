"""Published results: a CSV file with our axes and the source's numbers, converted to SI units."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossover.config.validation import read_text
from crossover.config.words import AXES, DEVICES, EXECUTIONS, PRECISIONS, PROTOCOLS
from crossover.errors import UserError, allowed_names, shown_path, shown_value

WORDS = {"protocol": PROTOCOLS, "precision": PRECISIONS, "execution": EXECUTIONS, "device": DEVICES}
"""The allowed values of axes that are no counts."""

COUNTS = ("batch_size", "size")
"""Axes whose values are counts."""

TEXTS = ("label", "hardware")
"""The source's name for a run, and its hardware."""

AXES_OF_RESULTS = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))

METRICS = (
    "run_time_s",
    "step_time_s",
    "latency_s",
    "latency_std_s",
    "samples_per_s",
    "peak_allocated_bytes",
    "device_used_bytes",
    "max_abs_error",
    "max_relative_error",
)
"""Metrics that a source may publish, in SI units."""

UNITS: dict[str, dict[str, float]] = {
    "_s": {"_s": 1.0, "_ms": 1e-3, "_us": 1e-6, "_min": 60.0},
    "_bytes": {"_bytes": 1, "_mb": 1000**2, "_gb": 1000**3, "_mib": 1024**2, "_gib": 1024**3},
}
"""For each ending of a metric in SI units, the endings that a column may have, with their factors."""

Value = str | int | float | None


def _scales() -> dict[str, tuple[str, float]]:
    scales = {metric: (metric, 1.0) for metric in METRICS}
    for metric in METRICS:
        for ending, units in UNITS.items():
            if metric.endswith(ending) and not metric.endswith("_per_s"):
                scales |= {metric.removesuffix(ending) + unit: (metric, factor) for unit, factor in units.items()}
    return scales


SCALES = _scales()
"""The columns with results that a file may have: for each its metric and the factor to SI units."""

ALLOWED = (*AXES_OF_RESULTS, *TEXTS, *SCALES)
"""All columns that a file may have."""


def read_published_rows(path: Path) -> tuple[str, list[dict[str, Value]]]:
    """The source, from the `#` lines, and one row per published run; an empty field is None.

    Metrics are in seconds, bytes and samples per second. Raises UserError naming file, line and column.
    """
    where = shown_path(path)
    lines = read_text(path).splitlines()
    source = " ".join(line.lstrip("# ").strip() for line in lines if line.startswith("#"))
    if not source:
        raise UserError(f"{where}: no line starts with '#'; the first ones say whose numbers these are")
    numbered = [(f"{where}: line {number}", line) for number, line in enumerate(lines, 1)]
    table = [(line_name, _fields(line, line_name)) for line_name, line in numbered if line.strip() and line[0] != "#"]
    if not table:
        raise UserError(f"{where}: no columns; allowed: {', '.join(ALLOWED)}")
    (_, names), *records = table
    _check_columns(names, where)
    rows: list[dict[str, Value]] = []
    runs: dict[tuple[Value, ...], str] = {}
    for line_name, fields in records:
        if len(fields) != len(names):
            raise UserError(f"{line_name}: {len(fields)} fields; allowed: {len(names)}, one per column")
        row = _row(dict(zip(names, fields, strict=True)), line_name)
        if not any(row.get(metric) for metric in METRICS):
            raise UserError(f"{line_name}: no result; allowed: a line with at least one")
        run = tuple(row[name] for name in names if name in row and name not in METRICS)
        if run in runs:
            first = runs[run].removeprefix(f"{where}: ")
            raise UserError(f"{line_name}: the run of {first} again; allowed: each run once, or runs with a label each")
        runs[run] = line_name
        rows.append(row)
    if not rows:
        raise UserError(f"{where}: no line follows the columns; allowed: one line per published run")
    return source, rows


def _check_columns(names: Sequence[str], where: str) -> None:
    """Raise UserError for an unknown column, for two columns of a metric, and without a metric."""
    column_of: dict[str, str] = {}
    for name in names:
        if name not in ALLOWED:
            raise UserError(f"{where}: column {shown_value(name)} is unknown; {allowed_names(name, ALLOWED)}")
        metric, _ = SCALES.get(name, (name, None))
        if metric in column_of:
            raise UserError(f"{where}: column '{name}' holds what '{column_of[metric]}' holds; allowed: one of them")
        column_of[metric] = name
    if not set(names) & SCALES.keys():
        raise UserError(f"{where}: no column holds a result; allowed: {', '.join(SCALES)}")


def _fields(line: str, line_name: str) -> list[str]:
    """The fields of a line, stripped; a quoted field must end on its line."""
    try:
        return [field.strip() for field in next(csv.reader([line], strict=True))]
    except csv.Error as error:
        raise UserError(f"{line_name}: not readable as CSV ({error}); close each quote on its line") from None


def _row(fields: Mapping[str, str], line_name: str) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, text in fields.items():
        metric, factor = SCALES.get(name, (name, None))
        row[metric] = _value(name, text, factor, f"{line_name}: {name}") if text else None
    return row


def _value(name: str, text: str, factor: float | None, where: str) -> Value:
    """The value of a field, in SI units; raises UserError that starts with `where`."""
    if name in WORDS and text not in WORDS[name]:
        raise UserError(f"{where}: {shown_value(text)} is unknown; {allowed_names(text, WORDS[name])}")
    if name not in COUNTS and factor is None:
        return text
    digits = r"[0-9]{1,10}" if name in COUNTS else r"([0-9]+\.?|[0-9]*\.[0-9]+)(e[-+]?[0-9]+)?"
    number = float(text) if re.fullmatch(digits, text, re.ASCII | re.IGNORECASE) else math.nan
    if not (0 < number < math.inf):
        kind = "whole number" if name in COUNTS else "number"
        raise UserError(f"{where}: {shown_value(text)} is not allowed; allowed: a {kind} above 0")
    return int(number) if factor is None else number * factor

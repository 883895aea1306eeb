"""Published results: a CSV file in long form, with our axes and the source's numbers brought to SI units.

Read by the configuration, which checks it before any job starts, and by the analysis; it imports no pandas.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from crossover.errors import UserError
from crossover.records import AXES, DEVICES, EXECUTIONS, PRECISIONS, PROTOCOLS
from crossover.validation import allowed_names, shown_path

WORDS = {"protocol": PROTOCOLS, "precision": PRECISIONS, "execution": EXECUTIONS, "device": DEVICES}
"""Axes whose values are words of ours."""

COUNTS = ("batch_size", "size")
"""Axes whose values are counts."""

TEXTS = ("label", "hardware")
"""What the source calls a run, and what it ran on."""

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
"""What a source may have measured, in SI units."""

UNITS: dict[str, dict[str, float]] = {
    "_s": {"_s": 1.0, "_ms": 1e-3, "_us": 1e-6, "_min": 60.0},
    "_bytes": {"_bytes": 1, "_mb": 1000**2, "_gb": 1000**3, "_mib": 1024**2, "_gib": 1024**3},
}
"""Endings of a column by the ending that its metric has in SI units, with their factors."""

Value = str | int | float | None


def scales() -> dict[str, tuple[str, float]]:
    """For each column that a file may have, its metric and the factor that brings it there."""
    found = {metric: (metric, 1.0) for metric in METRICS}
    for metric in METRICS:
        ending = next((ending for ending in UNITS if metric.endswith(ending)), None)
        if ending and not metric.endswith("_per_s"):
            for other, factor in UNITS[ending].items():
                found[metric.removesuffix(ending) + other] = (metric, factor)
    return found


def read_published_rows(path: Path) -> tuple[str, list[dict[str, Value]]]:
    """The source, as the `#` lines name it, and one row a published run; an empty field is None.

    Metrics are in seconds, bytes and samples per second. Raises UserError naming file, line and column.
    """
    where = shown_path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise UserError(f"{where} does not exist; name a CSV file in config/published/") from None
    source = " ".join(line.lstrip("# ").strip() for line in lines if line.startswith("#"))
    if not source:
        raise UserError(f"{where}: no line starts with '#'; the first ones say whose numbers these are")
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    table = list(csv.reader(line for _, line in numbered))
    if not table:
        raise UserError(f"{where}: no columns; allowed: {', '.join(_allowed())}")
    names, *records = table
    for name in names:
        if name not in _allowed():
            raise UserError(f"{where}: column '{name}' is unknown; {allowed_names(name, _allowed())}")
    if not set(names) & scales().keys():
        raise UserError(f"{where}: no column holds a result; allowed: {', '.join(scales())}")
    rows = []
    for (number, _), fields in zip(numbered[1:], records, strict=True):
        if len(fields) != len(names):
            raise UserError(f"{where}: line {number}: {len(fields)} fields; allowed: {len(names)}, one a column")
        rows.append(_row(dict(zip(names, fields, strict=True)), f"{where}: line {number}"))
    return source, rows


def _allowed() -> list[str]:
    return [*AXES_OF_RESULTS, *TEXTS, *scales()]


def _row(fields: Mapping[str, str], place: str) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, text in fields.items():
        metric, factor = scales().get(name, (name, None))
        row[metric] = _value(name, text.strip(), factor, f"{place}: {name}") if text.strip() else None
    return row


def _value(name: str, text: str, factor: float | None, place: str) -> Value:
    if name in WORDS and text not in WORDS[name]:
        raise UserError(f"{place}: '{text}' is unknown; {allowed_names(text, WORDS[name])}")
    if name not in COUNTS and factor is None:
        return text
    try:
        number = int(text) if name in COUNTS else float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise UserError(f"{place}: '{text}' is not allowed; allowed: a number above 0")
    return number if factor is None else number * factor

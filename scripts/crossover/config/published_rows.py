"""Read published results from a CSV file: the axes of cells, and the source's numbers converted to SI units."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crossover.config.layers import read_text
from crossover.config.studies import MOST
from crossover.config.table_files import DELIMITERS
from crossover.config.words import AXES, DEVICES, EXECUTIONS, PRECISIONS, PROTOCOLS
from crossover.errors import UserError, allowed_names, shown_path, shown_value

WORDS = {"protocol": PROTOCOLS, "precision": PRECISIONS, "execution": EXECUTIONS, "device": DEVICES}
"""Allowed values, for axes that have a fixed set."""

COUNTS = ("batch_size", "size", "parameters")

TEXTS = ("label", "hardware")
"""Columns with the source's name for a run, and with the hardware of the run."""

AXES_OF_RESULTS = tuple(axis for axis in AXES if axis not in ("study", "workload", "machine"))

PLACES = (*AXES_OF_RESULTS, "parameters")
"""Columns that say which cells a run matches; a source may give the number of parameters instead of the size."""

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
"""For each SI suffix of a metric, the suffixes that a column of a file may have, with their factors."""

Value = str | int | float | None
SOURCE = ("#", '"#')
"""Beginnings of the lines that name the source."""


def _scales() -> dict[str, tuple[str, float]]:
    scales = {metric: (metric, 1.0) for metric in METRICS}
    for metric in METRICS:
        for ending, units in UNITS.items():
            if metric.endswith(ending) and not metric.endswith("_per_s"):
                scales |= {metric.removesuffix(ending) + unit: (metric, factor) for unit, factor in units.items()}
    return scales


SCALES = _scales()
"""Columns with results: for each its metric and the factor to SI units."""

ALLOWED = (*PLACES, *TEXTS, *SCALES)


def read_published_rows(path: Path) -> list[dict[str, Value]]:
    """One row per published run, in SI units; an empty field is None. The first lines, with `#`, must name the source.

    If the delimiter is not a comma, numbers may have decimal commas. Raises UserError, naming the file.
    """
    where = shown_path(path)
    lines = [(f"{where}: line {number}", line) for number, line in enumerate(read_text(path).splitlines(), 1)]
    # A spreadsheet quotes a `#` line that contains a delimiter, and adds empty fields to all lines.
    table = [(shown, line) for shown, line in lines if not line.startswith(SOURCE) and line.strip(" ,;|\t")]
    delimiter = max(DELIMITERS, key=table[0][1].count) if table else DELIMITERS[0]
    if not any(line.startswith(SOURCE) and line.strip('"#,;|\t ') for _, line in lines):
        raise UserError(f"{where}: no line starts with '#'; the first lines must name the source")
    if not table:
        raise UserError(f"{where}: no columns; allowed: {', '.join(ALLOWED)}")
    names, *records = [_fields(line, delimiter, shown) for shown, line in table]
    while not names[-1]:
        names.pop()
    _check_columns(names, where)
    if not records:
        raise UserError(f"{where}: no line follows the columns; allowed: one line per published run")
    rows = []
    for fields, (shown, _) in zip(records, table[1:], strict=True):
        if len(fields) < len(names) or any(fields[len(names) :]):
            raise UserError(f"{shown}: {len(fields)} fields; allowed: {len(names)}, one per column")
        row = {}
        for name, text in zip(names, fields, strict=False):
            metric, factor = SCALES.get(name, (name, None))
            row[metric] = _value(name, text, factor, delimiter, f"{shown}: {name}") if text else None
        if not any(row.get(metric) for metric in METRICS):
            raise UserError(f"{shown}: no result; allowed: a line with at least one")
        rows.append(row)
    return rows


def _check_columns(names: Sequence[str], where: str) -> None:
    columns: dict[str, str] = {}
    for name in names:
        if name not in ALLOWED:
            quantities = {column: metric.rpartition("_")[0] for column, (metric, _) in SCALES.items()}
            units = [column for column, quantity in quantities.items() if name.startswith(f"{quantity}_")]
            allowed = f"allowed: {', '.join(units)}" if units else allowed_names(name, ALLOWED)
            raise UserError(f"{where}: column {shown_value(name)} is unknown; {allowed}")
        metric, _ = SCALES.get(name, (name, None))
        if metric in columns:
            raise UserError(
                f"{where}: columns '{columns[metric]}' and '{name}' give the same quantity; allowed: one of them"
            )
        columns[metric] = name
    if not set(names) & SCALES.keys():
        raise UserError(f"{where}: no column has results; allowed: {', '.join(SCALES)}")


def _fields(line: str, delimiter: str, shown_line: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise UserError(f"{shown_line}: not readable as CSV ({error}); close each quote on its line") from None


def _value(name: str, text: str, factor: float | None, delimiter: str, shown_line: str) -> Value:
    if name in WORDS and text not in WORDS[name]:
        raise UserError(f"{shown_line}: {shown_value(text)} is unknown; {allowed_names(text, WORDS[name])}")
    if name not in COUNTS and factor is None:
        return text
    number: float = math.nan
    with suppress(ValueError):
        number = int(text) if name in COUNTS else float(text if delimiter == "," else text.replace(",", "."))
    if not 0 < number < (MOST if name in COUNTS else math.inf):
        allowed = f"a whole number from 1 to {MOST - 1:,}" if name in COUNTS else "a number above 0"
        raise UserError(f"{shown_line}: {shown_value(text)} is not allowed; allowed: {allowed}")
    return number if factor is None else number * factor

"""Check that the files, rows and tables of a run or a reference agree and were not edited. The checks find mistakes
and careless edits, not forgeries with recomputed checksums and tables.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from crossover.config.words import FLAGS, REFERENCE_FILES, STATUSES
from crossover.errors import UserError, shown_text
from crossover.files import sha256_of
from crossover.tables.frames import write_csv
from crossover.tables.references import read_reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import TABLE_NAMES

TOLERANCE = 1e-9
"""Relative difference of two numbers that counts as rounding, for example by another version of NumPy."""

KEYS = ("code_key", "model_key", "measurement_key")


@dataclass(frozen=True)
class Finding:
    """An error in a file, or a check that was not possible."""

    file: str
    what: str
    is_wrong: bool = True


def check_reference(folder: Path) -> list[Finding]:
    """Check the checksum, facts, columns and rows of a reference."""
    facts_file, trials_file = REFERENCE_FILES
    try:
        reference = read_reference(folder)
    except UserError as error:
        return [Finding(facts_file, str(error))]
    return [Finding(trials_file, what) for what in check_rows(reference.trials)]


def check_files(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Finding]:
    """Report files that are missing, or whose checksum differs from the one in the report's provenance."""
    listed = {unquote(file.get("link", "")): file.get("sha256") for file in provenance["files"]}
    for name in sorted({*listed, *(f"{table}.parquet" for table in TABLE_NAMES)}):
        if not (folder / name).is_file():
            yield Finding(name, "is missing")
        elif sha256_of(folder / name) != listed.get(name):
            yield Finding(name, "was changed after the report was made: its checksum differs")


def check_rows(rows: pd.DataFrame) -> Iterator[str]:
    """Describe errors in rows of trials: contradictions, and keys that differ within a model."""
    for row in rows.to_dict("records"):
        yield from (f"{_name(row)}, trial {row['trial']}: {what}" for what in _check_row(row))
    for (study, workload, _), same in rows.groupby(["study", "workload", "model"], dropna=False, sort=False):
        for name in KEYS:
            if (count := same[name].nunique()) > 1:
                yield f"{study}, {workload}: {count} values of {name}; expected: one"


def check_numbers(rows: pd.DataFrame) -> Iterator[str]:
    """Describe cells of a run with a missing or duplicate trial; a reference omits invalid trials."""
    for key, cell in rows.groupby(CELL_AXES, sort=False):
        numbers = sorted(cell["trial"])
        if numbers != [*range(1, len(numbers) + 1)]:
            name = _name(dict(zip(CELL_AXES, key, strict=True)))
            yield f"{name}: trials {', '.join(map(str, numbers))}; expected: 1 to {len(numbers)}"


def _check_row(row: Mapping[Any, Any]) -> Iterator[str]:
    time_s, samples_s = row["step_time_s"], row["samples_s"]
    if row["status"] not in STATUSES:
        yield f"status '{row['status']}'; allowed: {', '.join(STATUSES)}"
    if row["status"] == "ok" and not (pd.notna(time_s) and 0 < time_s < math.inf):
        yield f"status ok with a step time of {time_s}"
    if unknown := {*(row["flags"] if row["flags"] is not None else ())} - FLAGS.keys():
        yield f"unknown flag '{min(unknown)}'"
    for name in KEYS:
        if isinstance(row[name], str) and not re.fullmatch(r"[0-9a-f]{32}", row[name]):
            yield f"{name} '{row[name]}' is not a key of 32 hexadecimal digits"
    if pd.notna(time_s) and isinstance(samples_s, np.ndarray) and len(samples_s):
        median_s = statistics.median(samples_s)
        if not math.isclose(time_s, median_s, rel_tol=TOLERANCE):
            yield f"step_time_s {time_s:.6g}, but the median of its samples is {median_s:.6g}"


def _name(row: Mapping[Any, Any]) -> str:
    return "/".join(str(row[axis]) for axis in CELL_AXES)


def check_csv(path: Path, table: pd.DataFrame) -> Iterator[Finding]:
    """Report a CSV file that differs from the table of the same name."""
    with TemporaryDirectory() as folder:
        lists = table.map(lambda value: value.tolist() if isinstance(value, np.ndarray) else value)
        write_csv(lists, Path(folder) / path.name)
        if not path.is_file() or path.read_bytes() != (Path(folder) / path.name).read_bytes():
            yield Finding(path.name, "is not the table of the same name in Parquet")


def check_table(file: str, stored: pd.DataFrame, expected: pd.DataFrame, source: str) -> Iterator[Finding]:
    """Report a table that differs, beyond rounding, from the one that `source` gives."""
    if len(stored) != len(expected):
        yield Finding(file, f"is not what {source} give: {len(stored)} rows; expected: {len(expected)}")
        return
    try:
        pd.testing.assert_frame_equal(stored, expected, check_dtype=False, rtol=TOLERANCE, atol=0)
    except AssertionError as error:
        column = re.search(r'column name="(\w+)"', str(error))
        where = f"column {column[1]}, " if column else ""
        yield Finding(file, f"is not what {source} give: {where}{shown_text(str(error).splitlines()[-1])}")

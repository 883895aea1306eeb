"""Check that the files, rows and tables of a run or a reference agree and were not edited.

The checks find mistakes and careless edits, not forgeries with recomputed checksums and tables.
"""

from __future__ import annotations

import json
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

from crossover.config.statuses import FLAGS, STATUSES
from crossover.config.words import REFERENCE_FILES
from crossover.errors import UserError, shown_text
from crossover.files import sha256_of
from crossover.reading import UnreadableError, read_json, read_text
from crossover.tables.frames import read_arrow_table, read_csv, records, write_csv
from crossover.tables.reference_files import CHECKSUM, read_reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import REPORT_FILES, TABLE_NAMES

TOLERANCE = 1e-9
"""Relative tolerance, since versions of NumPy may round differently."""

KEYS = ("code_key", "model_key", "measurement_key")


@dataclass(frozen=True)
class Finding:
    """An error in a file or, if not `is_wrong`, a remark."""

    file: str
    what: str
    is_wrong: bool = True


def check_reference(folder: Path) -> list[Finding]:
    """Check the checksums, facts, roofs and trials of a reference."""
    facts_file, trials_file = REFERENCE_FILES
    try:
        reference = read_reference(folder)
    except UserError as error:
        return [Finding(facts_file, str(error))]
    findings = [Finding(facts_file, what) for what in _check_roofs(reference.roofs)]
    findings += [Finding(trials_file, what) for what in check_rows(reference.trials)]
    findings += check_numbers(trials_file, reference.trials, omits_invalid=True)
    if read_json(folder / facts_file, "reference").get(CHECKSUM) is None:
        what = "has no checksum of its facts and roofs, since it was exported by an older version"
        findings.append(Finding(facts_file, what, is_wrong=False))
    if reference.facts.name != (name := folder.resolve().name):
        what = f"name is '{reference.facts.name}'; the folder's is '{name}'"
        is_shipped = folder.resolve().parts[-3:-1] == ("config", "reference")
        findings.append(Finding(facts_file, what, is_wrong=is_shipped))
    return findings


def _check_roofs(roofs: pd.DataFrame) -> Iterator[str]:
    between = (roofs["lowest"] <= roofs["value"]) & (roofs["value"] <= roofs["highest"])
    for roof in records(roofs[~between.fillna(False)]):
        yield f"roof {roof['roof']}: value {roof['value']}; expected: {roof['lowest']} to {roof['highest']}"


def check_version(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Raise UserError if the tables of a run of another version cannot be read."""
    versions = ", ".join(str(rows.get("crossover_version")) for rows in provenance.get("measured_by", ()))
    made_by = f"Crossover {versions}, commit {provenance['code'].get('code_version')}"
    listed = {file.get("name"): file.get("sha256") for file in provenance["files"]}
    for table in TABLE_NAMES:
        path = folder / f"{table}.parquet"
        if path.name not in listed and not path.is_file():
            raise UserError(
                f"{folder}: made by an older version ({made_by}), which has no table '{table}'; use that version"
            )
        if path.is_file() and sha256_of(path) == listed.get(path.name):
            try:
                read_arrow_table(path)
            except UnreadableError as error:
                raise UserError(f"{path}: {error.reason}; made by {made_by}; use that version") from None


def check_files(folder: Path, provenance: Mapping[str, Any], is_of_this_version: bool) -> Iterator[Finding]:
    """Yield a finding for each file that is missing or differs from its checksum."""
    listed = {unquote(file.get("link", "")): file.get("sha256") for file in provenance["files"]}
    expected = {*listed, *(f"{table}.parquet" for table in TABLE_NAMES)}
    sums = folder / REPORT_FILES["checksums"]
    if sums.is_file():
        lines = [line.partition("  ") for line in read_text(sums, "list of checksums").splitlines()]
        listed |= {name: checksum for checksum, _, name in lines}
        expected |= {*listed, *REPORT_FILES.values()} - {sums.name}
    else:
        what = "is missing, so page, summaries and figures were not checked"
        yield Finding(sums.name, what, is_wrong=is_of_this_version)
    for name in sorted(expected):
        if not (folder / name).is_file():
            yield Finding(name, "is missing")
        elif sha256_of(folder / name) != listed.get(name):
            yield Finding(name, "was changed after the report was made: its checksum differs")


def check_rows(rows: pd.DataFrame) -> Iterator[str]:
    """Describe errors in trials: in single rows, and different keys for the same model on a machine."""
    for row in rows.to_dict("records"):
        yield from (f"{_name(row)}, trial {row['trial']}: {what}" for what in _check_row(row))
    axes = ["machine", "study", "workload", "model"]
    for (_, study, workload, _), same in rows.groupby(axes, dropna=False, sort=False):
        for name in KEYS:
            if (count := same[name].nunique()) > 1:
                yield f"{study}, {workload}: {count} values of {name}; expected: one"


def check_numbers(file: str, rows: pd.DataFrame, omits_invalid: bool = False) -> Iterator[Finding]:
    """Yield a finding for each cell whose trials are not numbered from 1 without gaps or duplicates.

    With `omits_invalid`, as for a reference, a gap is not an error.
    """
    for key, cell in rows.groupby(CELL_AXES, sort=False):
        numbers = sorted(cell["trial"])
        if numbers != [*range(1, len(numbers) + 1)]:
            name = _name(dict(zip(CELL_AXES, key, strict=True)))
            what = f"{name}: trials {', '.join(map(str, numbers))}; expected: 1 to {len(numbers)}"
            is_gap = numbers[0] >= 1 and len(numbers) == len({*numbers})
            yield Finding(file, what, is_wrong=not (omits_invalid and is_gap))


def _check_row(row: Mapping[Any, Any]) -> Iterator[str]:
    time_s, samples_s = row["step_time_s"], row["samples_s"]
    if row["status"] not in STATUSES:
        yield f"status '{row['status']}'; allowed: {', '.join(STATUSES)}"
    if row["status"] == "ok" and not (pd.notna(time_s) and 0 < time_s < math.inf):
        yield f"status ok with a step time of {time_s}"
    if row["status"] not in ("ok", "invalid") and pd.notna(time_s):
        yield f"status {row['status']} with a step time of {time_s}"
    if unknown := {*(row["flag_names"] if row["flag_names"] is not None else ())} - FLAGS.keys():
        yield f"unknown flag '{min(unknown)}'"
    for name in KEYS:
        if isinstance(row[name], str) and not re.fullmatch(r"[0-9a-f]{32}", row[name]):
            yield f"{name} '{row[name]}' is not a key of 32 hexadecimal digits"
    if pd.notna(time_s) and isinstance(samples_s, np.ndarray) and len(samples_s):
        median_s, mean_s = statistics.median(samples_s), statistics.fmean(samples_s)
        if not any(math.isclose(time_s, given_s, rel_tol=TOLERANCE) for given_s in (median_s, mean_s)):
            yield f"step_time_s {time_s:.6g}, but the median of its samples is {median_s:.6g}, their mean {mean_s:.6g}"


def _name(row: Mapping[Any, Any]) -> str:
    return "/".join(str(row[axis]) for axis in CELL_AXES)


def check_csv(path: Path, table: pd.DataFrame) -> Iterator[Finding]:
    """Compare a CSV file with the table of the same name; yield a finding if they differ.

    The table is written as CSV and read back first, since versions of pandas differ in whether they write 1 or 1.0.
    """
    with TemporaryDirectory() as folder:
        lists = table.map(lambda value: value.tolist() if isinstance(value, np.ndarray) else value)
        write_csv(lists, Path(folder) / path.name)
        try:
            stored = read_csv(path)
        except UnreadableError as error:
            yield Finding(path.name, error.reason)
            return
        yield from check_table(path.name, stored, read_csv(Path(folder) / path.name), "the rows in Parquet")


def check_table(file: str, stored: pd.DataFrame, expected: pd.DataFrame, source: str) -> Iterator[Finding]:
    """Yield a finding if a table differs from `expected`, which comes from `source`, beyond rounding."""
    if len(stored) != len(expected):
        yield Finding(file, f"differs from what {source} give: {len(stored)} rows; expected: {len(expected)}")
        return
    try:
        given, wanted = map(_with_parsed_fields, (stored, expected))
        pd.testing.assert_frame_equal(given, wanted, check_dtype=False, rtol=TOLERANCE, atol=0)
    except AssertionError as error:
        column = re.search(r'column name="(\w+)"', str(error))
        where = f"column {column[1]}, " if column else ""
        yield Finding(file, f"differs from what {source} give: {where}{shown_text(str(error).splitlines()[-1])}")


def _with_parsed_fields(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the numbers in its JSON, if it has any, so that they are compared up to rounding."""
    return table.assign(fields=table["fields"].map(_parsed)) if "fields" in table else table


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text

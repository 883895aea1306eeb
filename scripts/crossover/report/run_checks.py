"""Checks of a results folder, or of a reference: that its files, rows and tables agree, and that none was edited.

They find mistakes and careless edits. Whoever edits every file and computes every checksum and table anew is not found.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from crossover.answers.analysis import analyse
from crossover.answers.thresholds import thresholds_of
from crossover.config.words import FLAGS, REFERENCE_FILES, STATUSES
from crossover.config.workloads import OWN
from crossover.errors import UserError
from crossover.files import sha256_of
from crossover.machine.code_key import Modules, code_of
from crossover.machine.invocation import find_checkout
from crossover.reading import read_json
from crossover.report.provenance import read_provenances
from crossover.tables.columns import arrow_schema
from crossover.tables.frames import read_arrow_table, read_run, read_table, write_csv, write_run
from crossover.tables.references import Reference, facts_of, read_reference
from crossover.tables.registry import CELL_AXES
from crossover.tables.rows import collect_rows
from crossover.tables.run_tables import TABLES, RunTables

TOLERANCE = 1e-9
"""Relative difference of two numbers that counts as rounding, as of another version of numpy."""

KEYS = ("code_key", "model_key", "measurement_key")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a file."""

    file: str
    what: str


@dataclass
class Checked:
    """The outcome of all checks of a folder."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    """What could not be checked, and why."""

    def add(self, file: str, found: Iterator[str]) -> None:
        """Record what a check finds; a file that it cannot read is a finding, too."""
        try:
            self.findings += [Finding(file, what) for what in found]
        except UserError as error:
            self.findings.append(Finding(file, str(error)))


@dataclass(frozen=True)
class Planned:
    """What the plan of a run says that the checks need."""

    studies: Mapping[str, Mapping[str, Any]]
    prices: Mapping[str, Any] | None
    rows: Sequence[Path]
    """Of all trials, in the results folder."""
    trainings: pd.DataFrame | None
    """None where their rows are not in the folder."""
    references: Sequence[Reference]


def is_reference(folder: Path) -> bool:
    """Whether a folder holds a reference, not the results of a run."""
    return (folder / REFERENCE_FILES[0]).is_file()


def check_reference(folder: Path) -> Checked:
    """Check a reference: its checksum, facts, columns and rows."""
    checked = Checked()
    facts_file, trials_file = REFERENCE_FILES
    try:
        reference = read_reference(folder)
    except UserError as error:
        return Checked([Finding(facts_file, str(error))])
    trials, facts = reference.trials, reference.facts
    checked.add(trials_file, check_rows(trials.assign(code_version=facts.code_version)))
    if facts.device_name not in set(trials["device_name"]):
        checked.findings.append(Finding(facts_file, f"device_name '{facts.device_name}' is of no trial"))
    return checked


def check_run(folder: Path, planned: Planned | None) -> Checked:
    """Check a results folder; without a plan, as of merged runs, its tables cannot be computed again."""
    checked, name = Checked(), "measurements.parquet"
    provenance = read_provenances([("", folder)])[0]["provenance"]
    if provenance is None:
        return Checked([Finding("provenance.json", "not the provenance of a report")])
    checked.add("provenance.json", check_files(folder, provenance))
    try:
        measurements = read_table(folder / name)
    except UserError as error:
        checked.findings.append(Finding(name, str(error)))
        return checked
    checked.add(name, check_schema(folder / name))
    checked.add(name, check_rows(measurements))
    if planned is None:
        checked.not_checked.append("rows of single trials and derived tables: the folder has no plan.json")
        return checked
    if any(path.is_file() for path in planned.rows):
        checked.add(name, check_trials(measurements, planned.rows))
    else:
        checked.not_checked.append("rows of single trials: the folder has no cells/")
    here, by = find_checkout().code_version, provenance["code"].get("code_version")
    check_tables(folder, measurements, planned, checked, "" if by == here else f" (made by {by}, checked by {here})")
    return checked


def check_files(folder: Path, provenance: Mapping[str, Any]) -> Iterator[str]:
    """Files that are missing or have another checksum than the provenance of the report says."""
    listed = {unquote(file.get("link", "")): file.get("sha256") for file in provenance["files"]}
    for name in sorted({*listed, "measurements.parquet", *(f"{table}.parquet" for table in TABLES)}):
        if name not in listed:
            yield f"{name} is not listed with its checksum"
        elif not (folder / name).is_file():
            yield f"{name} is missing"
        elif sha256_of(folder / name) != listed[name]:
            yield f"{name} was changed after the report was made: its checksum differs"


def check_schema(path: Path) -> Iterator[str]:
    """Columns of measurements that are missing, unknown or of another type."""
    schemas = (
        # Parquet calls the values of a list `element`, Arrow calls them `item`.
        {column.name: str(column.type).replace("element:", "item:") for column in schema}
        for schema in (read_arrow_table(path).schema, arrow_schema())
    )
    stored, expected = schemas
    for name in sorted({*stored, *expected}):
        if stored.get(name) != expected.get(name):
            yield f"column {name}: {stored.get(name, 'missing')}; expected: {expected.get(name, 'no such column')}"


def check_rows(rows: pd.DataFrame) -> Iterator[str]:
    """Rows of trials that contradict themselves or each other; columns that a reference lacks are passed over."""
    for row in rows.to_dict("records"):
        yield from (f"{_name(row)}: {what}" for what in _check_row(row))
    for key, cell in rows.groupby(CELL_AXES, sort=False):
        numbers = sorted(cell["trial"])
        # Invalid trials are no part of a reference.
        if numbers != [*range(1, len(numbers) + 1)]:
            missing = sorted({*range(1, int(max(numbers)) + 1)} - {*numbers})
            what = f"trial {missing[0]} is missing" if missing else "a trial is there twice"
            yield f"{_name(dict(zip(CELL_AXES, key, strict=True)))}: {what}"
    for (study, workload, _), same in rows.groupby(["study", "workload", "model"], dropna=False, sort=False):
        for name in KEYS:
            if (count := same[name].nunique()) > 1:
                yield f"{study}, {workload}: {count} values of {name}; expected: one"
    yield from _check_keys(rows)


def _check_row(row: Mapping[Any, Any]) -> Iterator[str]:
    if row["status"] not in STATUSES:
        yield f"status '{row['status']}'; allowed: {', '.join(STATUSES)}"
    if unknown := {*(row["flags"] if row["flags"] is not None else ())} - FLAGS.keys():
        yield f"unknown flag '{sorted(unknown)[0]}'"
    for name in KEYS:
        if isinstance(row[name], str) and not re.fullmatch(r"[0-9a-f]{32}", row[name]):
            yield f"{name} '{row[name]}' is no key of 32 hexadecimal digits"
    time_s, samples_s = row["step_time_s"], row["samples_s"]
    if row["status"] == "ok" and not (pd.notna(time_s) and 0 < time_s < math.inf):
        yield f"status ok with a step time of {time_s}"
    if pd.notna(time_s) and isinstance(samples_s, np.ndarray) and len(samples_s):
        expected = {"step_time_s": statistics.median(samples_s), "step_time_mean_s": statistics.fmean(samples_s)}
        for name, value in expected.items():
            if not math.isclose(row[name], value, rel_tol=TOLERANCE):
                yield f"{name} {row[name]:.6g}, but its samples give {value:.6g}"


def _check_keys(rows: pd.DataFrame) -> Iterator[str]:
    """Keys of this checkout's own workloads that are not those of its code, if the rows are of its commit."""
    rows = rows[(rows["code_version"] == find_checkout().code_version) & (rows["workload"] != OWN)]
    modules = Modules()
    for workload, of_workload in rows.groupby("workload", sort=False):
        code = code_of("trial", str(workload), modules)
        for name in ("model_key", "measurement_key"):
            if set(of_workload[name].dropna()) - {getattr(code, name)}:
                yield f"{workload}: {name} is not that of its code"


def _name(row: Mapping[Any, Any]) -> str:
    trial = f", trial {row['trial']}" if "trial" in row else ""
    return "/".join(str(row[axis]) for axis in CELL_AXES) + trial


def check_trials(measurements: pd.DataFrame, paths: Sequence[Path]) -> Iterator[str]:
    """What differs between the table of measurements and the rows of single trials in `cells/`."""
    rows = collect_rows([path for path in paths if path.is_file()]).to_pandas()
    if what := difference(measurements, rows):
        yield f"differs from the rows in cells/: {what}"


def check_tables(folder: Path, measurements: pd.DataFrame, planned: Planned, checked: Checked, by_others: str) -> None:
    """Compute all derived tables again from the rows, and compare them with the files.

    `by_others` says with which code they were made, if it is not this one.
    """
    try:
        stored = read_run(folder)
    except UserError as error:
        checked.findings.append(Finding("tables", str(error)))
        return
    for name in TABLES:
        checked.add(f"{name}.csv", _check_csv(folder / f"{name}.csv", read_table(folder / f"{name}.parquet")))
    there = [reference.facts for reference in planned.references]
    if any(facts not in there for facts in facts_of(stored.reference_cells).values()):
        checked.not_checked.append("derived tables: a reference of the run is not there, or is another one now")
        return
    if planned.trainings is None:
        checked.not_checked.append("derived tables: the folder lacks the rows of trainings")
        return
    computed = analyse(
        measurements,
        planned.trainings,
        stored.largest_batches,
        planned.studies,
        planned.prices,
        roofs=stored.roofs,
        references=planned.references,
    )
    with TemporaryDirectory() as temporary:
        write_run(computed, Path(temporary))
        for name in TABLES:
            pair = (read_table(place / f"{name}.parquet") for place in (folder, Path(temporary)))
            if (what := difference(*pair)) is not None:
                checked.findings.append(Finding(f"{name}.parquet", f"is not what the rows give{by_others}: {what}"))
    checked.add("thresholds.json", _check_thresholds(folder, computed))


def _check_csv(path: Path, table: pd.DataFrame) -> Iterator[str]:
    with TemporaryDirectory() as temporary:
        lists = table.map(lambda value: value.tolist() if isinstance(value, np.ndarray) else value)
        write_csv(lists, Path(temporary) / path.name)
        if not path.is_file() or path.read_bytes() != (Path(temporary) / path.name).read_bytes():
            yield "is not the table of the same name in Parquet"


def _check_thresholds(folder: Path, tables: RunTables) -> Iterator[str]:
    stored = read_json(folder / "thresholds.json", "thresholds")
    expected = json.loads(json.dumps(thresholds_of(tables, stored.get("made_at", ""))))
    if not alike(stored, expected):
        yield "is not what the rows give"


def difference(stored: pd.DataFrame, expected: pd.DataFrame) -> str | None:
    """The first difference of two tables, in words; None where there is none but rounding."""
    if len(stored) != len(expected):
        return f"{len(stored)} rows; expected: {len(expected)}"
    if list(stored.columns) != list(expected.columns):
        return "other columns"
    for name in stored.columns:
        for number, pair in enumerate(zip(stored[name], expected[name], strict=True), start=1):
            if not alike(*pair):
                return f"row {number}, {name}: {pair[0]}; expected: {pair[1]}"
    return None


def alike(value: Any, other: Any) -> bool:
    """Whether two values, or all that they hold, are the same but for rounding."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(alike(value[key], other[key]) for key in value)
    if isinstance(value, list | np.ndarray) and isinstance(other, list | np.ndarray):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(value, list | np.ndarray | Mapping) or isinstance(other, list | np.ndarray | Mapping):
        return False
    if pd.isna(value) or pd.isna(other):
        return bool(pd.isna(value) and pd.isna(other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=TOLERANCE)
    return bool(value == other)

"""Read the rows of trials, trainings and searches from their files, and join them."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.statuses import DISTURBED
from crossover.config.studies import SEARCH_VERSION, Cell
from crossover.config.words import AXES, HERE, HOST_BOUND_SHARE
from crossover.reading import UnreadableError, check_readable, read_arrow, read_each, read_json
from crossover.tables.columns import COLUMNS, Measurement, Row, arrow_schema
from crossover.tables.registry import SEARCH_AXES, SEARCHES
from crossover.tables.run_tables import table_of

ROWS_AT_ONCE = 500
"""Number of files that are joined at once, since tables of one row take far more memory than their joined rows."""

CUT_SHORT = {"incomplete", "not_checked"}
"""Flags of a row that lacks values which another row of its trial may have."""

FORMER_NAMES = {"flags": "flag_names"}
"""Current names of columns of trials, by their names in earlier versions."""

FROM_FIRST = ("status", "reason", "flag_names")
"""The columns of later trials that the first trial may change."""

SIDE_BY_SIDE = "side_by_side"


def reading_processes() -> int:
    """Number of processes that read rows while nothing is measured, regardless of --cores."""
    return min(4, os.cpu_count() or 1)


def collect_rows(paths: Sequence[Path], record: type[Row] = Measurement, processes: int = 1) -> pa.Table:
    """Read and join rows of trials (or trainings); raises UserError that lists all unreadable and outdated files."""
    rows, errors = read_rows(paths, record, processes)
    check_readable(errors)
    return joined(rows, record)


def read_rows(
    paths: Sequence[Path], record: type[Row], processes: int = 1
) -> tuple[pa.Table, dict[Path, UnreadableError]]:
    """The readable rows, in the order of their files, and the errors for the other files."""
    read = partial(_read_part, record=record)
    parts = [paths[start : start + ROWS_AT_ONCE] for start in range(0, len(paths), ROWS_AT_ONCE)]
    if processes == 1 or len(parts) < 2:
        results = list(map(read, parts))
    else:
        with ProcessPoolExecutor(min(processes, len(parts))) as pool:
            results = list(pool.map(read, parts))
    rows = pa.concat_tables([arrow_schema(record).empty_table(), *(table for table, _ in results)])
    return rows, {path: error for _, errors in results for path, error in errors.items()}


def _read_part(paths: Sequence[Path], record: type[Row]) -> tuple[pa.Table, dict[Path, UnreadableError]]:
    rows, errors = read_each(paths, partial(read_row, record=record))
    return pa.concat_tables([arrow_schema(record).empty_table(), *rows.values()]).combine_chunks(), errors


def joined(rows: pa.Table, record: type[Row]) -> pa.Table:
    """Order rows by cell and number. For trials, keep one row each, and apply the first trial's check and profile."""
    rows = rows.sort_by([(axis, "ascending") for axis in (*AXES, record.number)])
    return apply_first_trial(least_disturbed(rows)) if record is Measurement else rows


def read_row(path: Path, record: type[Row] = Measurement) -> pa.Table:
    """Read the row in a file; raises UnreadableError, also if another version wrote it."""
    row, schema = read_arrow(path, "row"), arrow_schema(record)
    try:
        if set(row.column_names) != set(schema.names) or row["schema_version"].to_pylist() != [record.schema_version]:
            raise UnreadableError(path, "written by another version of this workflow")
        row = row.select(schema.names)
        return row if row.schema.equals(schema) else row.cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise UnreadableError(path, f"not a readable row ({str(error).splitlines()[0]})") from None


def read_trials(path: Path, needed: Sequence[str], remedy: str, others: Sequence[str] = COLUMNS) -> pa.Table:
    """Read trials of any version: the needed columns, and those of `others` that the file has, with current types.

    Raises UnreadableError with the remedy if the file is unreadable or a needed column is missing.
    """
    trials = read_arrow(path, "table", [*needed, *others, *FORMER_NAMES], remedy)
    trials = trials.rename_columns([FORMER_NAMES.get(name, name) for name in trials.column_names])
    for name in needed:
        if name not in trials.column_names:
            raise UnreadableError(path, f"column '{name}' is missing", remedy)
    schema = arrow_schema()
    try:
        trials = trials.cast(pa.schema([schema.field(name) for name in trials.column_names]))
    except (pa.ArrowException, ValueError) as error:
        raise UnreadableError(path, f"not rows of trials ({str(error).splitlines()[0]})", remedy) from None
    if "machine" in trials.column_names:
        return with_column(trials, "machine", [machine or HERE for machine in trials["machine"].to_pylist()])
    return trials.append_column("machine", pa.array([HERE] * trials.num_rows, pa.string()))


def with_column(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    """A table with new values in a column, of the same type."""
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), field, pa.array(values, field.type))


def collect_searches(paths: Sequence[Path]) -> pd.DataFrame:
    """The cells of origin `search` from the files of searches; raises UserError like `collect_rows`."""
    rows, errors = read_each(paths, _read_search)
    check_readable(errors)
    return table_of("cells", rows.values()).sort_values(SEARCH_AXES, ignore_index=True)


def _read_search(path: Path) -> dict[str, Any]:
    search = read_json(path, "search")
    try:
        if search["schema_version"] != SEARCH_VERSION:
            raise UnreadableError(path, "written by another version of this workflow")
        return {
            **{name: search.get(name) for name in (*SEARCH_AXES, "status", "reason", *SEARCHES)},
            **{name: search.get(name) for name in ("device_name", "hostname", "threads")},
            "origin": "search",
            "machine": search.get("machine", HERE),
            "largest_batch": search.get("largest"),
            "search_start": search.get("start"),
            "search_limit": search.get("limit"),
            "flag_names": [],
            "tries_count": len(search["tries"]),
            "search_s": float(sum(attempt["duration_s"] for attempt in search["tries"])),
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreadableError(path, "not a readable search") from None


def disturbed_trials(trials: pa.Table) -> dict[Cell, dict[int, list[str]]]:
    """The flags of disturbed trials that are due to the machine (DISTURBED), by cell and trial number."""
    disturbed: dict[Cell, dict[int, list[str]]] = defaultdict(dict)
    for row in trials.select([*AXES, "trial", "status", "flag_names"]).to_pylist():
        if flags := _disturbances(row):
            disturbed[Cell(**{axis: row[axis] for axis in AXES})][row["trial"]] = flags
    return dict(disturbed)


def latest_repeats(rows: pa.Table) -> dict[tuple[Cell, int], list[str]]:
    """The flags of DISTURBED of the latest repeats, by cell and trial number, from rows that are not `joined`."""
    latest = pc.max(rows["repeat"]).as_py() or math.inf
    repeats = rows.select([*AXES, "trial", "repeat", "status", "flag_names"]).to_pylist()
    return {
        (Cell(**{axis: row[axis] for axis in AXES}), row["trial"]): _disturbances(row)
        for row in repeats
        if row["repeat"] == latest
    }


def least_disturbed(trials: pa.Table) -> pa.Table:
    """One row per trial: the first row, or a repeat that was less disturbed and is as complete."""
    if pc.max(trials["repeat"]).as_py() in (None, 0):
        return trials
    rows = trials.select([*AXES, "trial", "repeat", "status", "flag_names", "others_cpus"]).to_pylist()
    selected: dict[tuple[Any, ...], int] = {}
    for index in sorted(range(len(rows)), key=lambda index: rows[index]["repeat"] or 0):
        trial = (*_cell(rows[index]), rows[index]["trial"])
        if trial not in selected or _replaces(rows[index], rows[selected[trial]]):
            selected[trial] = index
    return trials.take(sorted(selected.values()))


def _replaces(repeat: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    if repeat["status"] != "ok" or CUT_SHORT.intersection(repeat["flag_names"] or ()).difference(
        row["flag_names"] or ()
    ):
        return False
    return _degree(repeat) < _degree(row)


def _degree(row: Mapping[str, Any]) -> tuple[int, float]:
    """How disturbed a row is, without its time: choosing the faster row would make a machine look faster than it is."""
    flags = _disturbances(row)
    return len(flags), (row["others_cpus"] or 0.0) if flags else 0.0


def _disturbances(row: Mapping[str, Any]) -> list[str]:
    flags = row["flag_names"] or () if row["status"] == "ok" else ()
    return [flag for flag in flags if flag in DISTURBED]


def apply_first_trial(trials: pa.Table) -> pa.Table:
    """Apply the first trial's check and profile to the cell's other trials.

    If the first trial is ok or passed the check, or if the study waived the check, the other trials keep their status
    and get no flag `not_checked`. If the first trial is invalid because its result is wrong or because it ended before
    the check, as after a crash, the other ok trials become `invalid`. In all other cases, the other ok trials are
    flagged `not_checked`.

    Trials that ran beside others on other GPUs are flagged `side_by_side` if the device mostly waits for the host in
    the first trial's profile.
    """
    ok_firsts = trials.filter((pc.field("trial") == 1) & (pc.field("status") == "ok"))
    alone = trials.filter(pc.field("leased_beside") > 0).num_rows == 0
    if alone and ok_firsts.num_rows == trials.group_by(list(AXES)).aggregate([]).num_rows:
        return trials
    rows = trials.select([*AXES, "trial", "check", "leased_beside", "host_bound_share", *FROM_FIRST]).to_pylist()
    firsts = {_cell(row): row for row in rows if row["trial"] == 1}
    rows = [_with_profile(_with_check(row, firsts.get(_cell(row))), firsts.get(_cell(row))) for row in rows]
    for name in FROM_FIRST:
        trials = with_column(trials, name, [row[name] for row in rows])
    return trials


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[axis] for axis in AXES)


def _with_check(row: dict[str, Any], first: dict[str, Any] | None) -> dict[str, Any]:
    if row["trial"] == 1 or row["status"] != "ok":
        return row
    if first and (first["status"] == "ok" or first["check"] in ("passed", "waived")):
        return row
    if first and first["status"] == "invalid" and first["check"] != "not_checked":
        return {**row, "status": "invalid", "reason": first["reason"]}
    why = f"ended with status {first['status']}" if first else "is missing"
    reason = row["reason"] or f"only a cell's first trial is checked, and it {why}"
    return {**row, "reason": reason, "flag_names": [*(row["flag_names"] or []), "not_checked"]}


def _with_profile(row: dict[str, Any], first: dict[str, Any] | None) -> dict[str, Any]:
    share = first["host_bound_share"] if first else None
    flags = row["flag_names"] or []
    if row["status"] != "ok" or not row["leased_beside"] or (share or 0) <= HOST_BOUND_SHARE or SIDE_BY_SIDE in flags:
        return row
    return {**row, "flag_names": [*flags, SIDE_BY_SIDE]}

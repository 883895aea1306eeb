"""What has finished of a run that has not: its rows that are there, can be read, and belong together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from crossover.analysis.largest_batches import SEARCH_COLUMNS, collect_searches
from crossover.analysis.merging import ENVIRONMENT_COLUMNS
from crossover.analysis.tables import joined, read_row
from crossover.errors import UserError
from crossover.records import Measurement


def finished_rows(
    paths: Sequence[Path],
    several_hosts: bool,
    record: type[Any] = Measurement,
    number: str = "trial",
    settings: Mapping[str, Collection[str]] | None = None,
) -> pa.Table:
    """The rows of trials (or of another record) among the files asked for; of a device those like its newest one.

    `settings` has the options that the commands of a study's trials have in common today: a row that was measured
    without one of them will be measured again. What is missing, cannot be read or comes from elsewhere is left out as
    well; `problems` names it.
    """
    rows = {}
    for path in _newest_first(paths):
        try:
            row = read_row(path, record)
        except UserError:
            continue
        if _of_today(row, settings or {}):
            rows[path] = row
    environments = {
        path: row.select(["device", *_columns(row.column_names)]).to_pylist()[0] for path, row in rows.items()
    }
    return joined([rows[path] for path in _alike(environments, several_hosts)], record, number)


def finished_searches(paths: Sequence[Path], several_hosts: bool) -> pd.DataFrame:
    """The same of searches for the largest batch."""
    environments = {}
    for path in _newest_first(paths):
        try:
            row = collect_searches([path]).iloc[0]
        except UserError:
            continue
        environments[path] = {column: row[column] for column in ("device", *_columns(SEARCH_COLUMNS))}
    return collect_searches(_alike(environments, several_hosts))


def _of_today(row: pa.Table, settings: Mapping[str, Collection[str]]) -> bool:
    (study,), (command,) = row["study"].to_pylist(), row["command"].to_pylist()
    return command is None or set(settings.get(study, ())) <= set(command.split())


def _newest_first(paths: Sequence[Path]) -> list[Path]:
    """The files that are there; one may come or go at this very moment."""
    written = {}
    for path in paths:
        try:
            written[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return sorted(written, key=lambda path: -written[path])


def _columns(names: Collection[str]) -> list[str]:
    return [column for column in ENVIRONMENT_COLUMNS if column in names]


def _alike(environments: Mapping[Path, Mapping[str, Any]], several_hosts: bool) -> list[Path]:
    """The files whose environment is that of the first one of their device; what a row does not know is passed over."""
    passed_over = {"device", "hostname"} if several_hosts else {"device"}
    first: dict[str, dict[str, Any]] = {}
    kept = []
    for path, row in environments.items():
        own = {column: value for column, value in row.items() if column not in passed_over and not pd.isna(value)}
        known = first.setdefault(str(row["device"]), {})
        if all(known.get(column, value) == value for column, value in own.items()):
            known |= own
            kept.append(path)
    return kept

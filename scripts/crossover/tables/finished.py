"""What has finished of a run that has not: its rows that are there, can be read, and belong together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from crossover.errors import UserError
from crossover.statistics.largest_batches import SEARCH_COLUMNS, collect_searches
from crossover.tables.columns import Measurement
from crossover.tables.frames import joined, readable_rows
from crossover.tables.guards import ENVIRONMENT_COLUMNS


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
    newest = _newest_first(paths)
    files, rows = readable_rows(newest, record)
    facts = rows.select(["study", "command", "machine", "device", *_columns(rows.column_names)]).to_pylist()
    found = dict(zip(files, enumerate(facts), strict=True))
    environments = {
        path: {name: value for name, value in found[path][1].items() if name not in ("study", "command")}
        for path in newest
        if path in found and _of_today(found[path][1], settings or {})
    }
    kept = [found[path][0] for path in _alike(environments, several_hosts)]
    return joined([rows.take(kept)] if kept else [], record, number)


def finished_searches(paths: Sequence[Path], several_hosts: bool) -> pd.DataFrame:
    """The same of searches for the largest batch."""
    environments = {}
    for path in _newest_first(paths):
        try:
            row = collect_searches([path]).iloc[0]
        except UserError:
            continue
        environments[path] = {column: row[column] for column in ("machine", "device", *_columns(SEARCH_COLUMNS))}
    return collect_searches(_alike(environments, several_hosts))


def _of_today(row: Mapping[str, Any], settings: Mapping[str, Collection[str]]) -> bool:
    return row["command"] is None or set(settings.get(row["study"], ())) <= set(row["command"].split())


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
    passed_over = {"machine", "device"} | ({"hostname"} if several_hosts else set())
    first: dict[tuple[str, str], dict[str, Any]] = {}
    kept = []
    for path, row in environments.items():
        own = {column: value for column, value in row.items() if column not in passed_over and not pd.isna(value)}
        known = first.setdefault((str(row["machine"]), str(row["device"])), {})
        if all(known.get(column, value) == value for column, value in own.items()):
            known |= own
            kept.append(path)
    return kept

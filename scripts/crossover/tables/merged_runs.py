"""The rows of several machines' runs joined into one table, in which the machine is an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.words import FLAGS, HERE
from crossover.errors import UserError
from crossover.reading import check_readable, read_each
from crossover.tables.columns import SCHEMA_VERSION, arrow_schema
from crossover.tables.first_trials import resting_on_first
from crossover.tables.frames import read_trials
from crossover.tables.guards import check_environments
from crossover.tables.registry import CELL_AXES
from crossover.tables.repeats import least_disturbed
from crossover.tables.roofs import read_roofs_of

NEEDED = [*(axis for axis in CELL_AXES if axis != "machine"), "trial", "status", "step_time_s", "schema_version"]
"""The columns without which rows say nothing; any other that a run lacks is empty in the joined table."""

OLDEST_VERSION = 2
"""Oldest version of rows that can be read: since then columns were added, and none changed its meaning."""

AGAIN = "copy it anew, or measure again with this version"


Run = tuple[str | None, Path]
"""The name of a machine, if the user gives one, and its results folder."""


@dataclass(frozen=True)
class JoinedRuns:
    """What several runs measured, each row with the name of its machine."""

    rows: pa.Table
    roofs: pd.DataFrame


def join_runs(runs: Sequence[Run]) -> JoinedRuns:
    """The rows and the roofs of all runs, in the order of the runs.

    A run that names its machines itself keeps these names; otherwise a machine is named by the user, or after its host.
    Raises UserError for a folder or name that two runs share, for a row that cannot be read, and for rows of one
    machine that do not belong together.
    """
    _check_folders(runs)
    owners: dict[str, Path] = {}
    tables, roofs = [], []
    for name, folder in runs:
        table = _read_run(folder)
        names = _names(table, name)
        tables.append(_with_names(table, names))
        own = read_roofs_of(folder)
        roofs.append(own.assign(machine=own["machine"].map(names)))
        for machine in pc.unique(tables[-1]["machine"]).to_pylist():
            if machine in owners:
                raise UserError(
                    f"{owners[machine]} and {folder} are both of machine '{machine}'; give each a name, as in "
                    "laptop=results_a h200=results_b"
                )
            owners[machine] = folder
    return JoinedRuns(pa.concat_tables(tables), pd.concat(roofs, ignore_index=True))


def _check_folders(runs: Sequence[Run]) -> None:
    places = Counter(folder.resolve() for _, folder in runs)
    for name, folder in runs:
        if places[folder.resolve()] > 1:
            raise UserError(f"{folder}: it is given twice; allowed: each folder once")
        if name == HERE:
            raise UserError(f"{folder}: '{HERE}' stands for a machine without a name; allowed: any other name")


def _read_run(folder: Path) -> pa.Table:
    """The rows of a run: its table of trials, or the rows in its cells/ if it was never collected."""
    table = folder / "measurements.parquet"
    files = [table] if table.is_file() else sorted((folder / "cells").rglob("trial-*.parquet"))
    if not files:
        raise UserError(
            f"{folder}: it has neither measurements.parquet nor rows in cells/; allowed: the results folder of a run"
        )
    schema = arrow_schema()
    rows = []
    found, torn = read_each(files, lambda file: read_trials(file, NEEDED, AGAIN))
    check_readable(torn)
    for file, table in found.items():
        versions = set(table["schema_version"].to_pylist())
        if versions - set(range(OLDEST_VERSION, SCHEMA_VERSION + 1)):
            raise UserError(
                f"{file}: rows of version {', '.join(map(str, sorted(versions, key=str)))}, but this workflow reads "
                f"versions {OLDEST_VERSION} to {SCHEMA_VERSION}; {AGAIN}"
            )
        rows.append(_with_known_flags(table))
    joined = pa.concat_tables([schema.empty_table(), *rows], promote_options="default")
    if not len(joined):
        raise UserError(f"{folder}: it holds no rows; allowed: the results folder of a run")
    try:
        check_environments(joined, several_hosts=True)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    joined = least_disturbed(joined).sort_by([(axis, "ascending") for axis in (*CELL_AXES, "trial")])
    # Earlier versions do not say how the first trial's answer was found.
    return resting_on_first(joined) if set(joined["schema_version"].to_pylist()) == {SCHEMA_VERSION} else joined


def _with_known_flags(table: pa.Table) -> pa.Table:
    """The rows without flags that this version no longer raises."""
    if "flags" not in table.column_names:
        return table
    kept = [[flag for flag in flags or () if flag in FLAGS] for flags in table["flags"].to_pylist()]
    place = table.column_names.index("flags")
    return table.set_column(place, "flags", pa.array(kept, arrow_schema().field("flags").type))


def _joined_values(column: Iterable[pa.Scalar]) -> str:
    """The values of a column in a few words: 'node1', 'node1 and node2', 'node1 and 3 more'."""
    names = sorted({str(value) for value in column if value.is_valid})
    if len(names) < 3:
        return " and ".join(names) or "unknown"
    return f"{names[0]} and {len(names) - 1} more"


def _names(table: pa.Table, name: str | None) -> dict[str, str]:
    """What the machines of a run's rows are called among others, by their own names."""
    own = table["machine"].unique().to_pylist()
    if own == [HERE]:
        return {HERE: (name or _joined_values(table["hostname"])).strip()}
    return {machine: f"{name}-{machine}" if name and len(own) > 1 else name or machine for machine in own}


def _with_names(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    place = table.column_names.index("machine")
    renamed = pa.array([names[machine] for machine in table["machine"].to_pylist()], pa.string())
    return table.set_column(place, table.schema.field("machine"), renamed)

"""Join the runs of several machines into one, with the machine as an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from crossover.config.words import HERE
from crossover.errors import UserError
from crossover.tables.frames import read_arrow_table
from crossover.tables.guards import check_environments
from crossover.tables.roof_files import read_roofs_of
from crossover.tables.rows import collect_rows, with_column
from crossover.text import shortened

COPY_AGAIN = "copy it again, or measure again with this version"

RunFolder = tuple[str | None, Path]
"""A machine's name, if given by the user, and its results folder."""


def join_runs(runs: Sequence[RunFolder]) -> tuple[pa.Table, pd.DataFrame]:
    """The rows and the roofs of several runs, with the names of their machines.

    A machine gets the name given by the user, or else the machine's name in the run, or else the host's name. If a run
    has several machines, the user's name becomes a prefix. Raises UserError, for example for a name used by two runs.
    """
    _check_folders(runs)
    owners: dict[str, Path] = {}
    tables, roofs = [], []
    for name, folder in runs:
        table = _read_run(folder)
        names = _names(table, name)
        tables.append(with_column(table, "machine", [names[machine] for machine in table["machine"].to_pylist()]))
        run_roofs = read_roofs_of(folder)
        roofs.append(run_roofs.assign(machine=run_roofs["machine"].map(names)))
        for machine in names.values():
            if machine in owners:
                raise UserError(
                    f"{owners[machine]} and {folder} are both of machine '{machine}'; give each a name: "
                    "laptop=results_a h200=results_b"
                )
            owners[machine] = folder
    return pa.concat_tables(tables), pd.concat(roofs, ignore_index=True)


def _check_folders(runs: Sequence[RunFolder]) -> None:
    counts = Counter(folder.resolve() for _, folder in runs)
    for name, folder in runs:
        if counts[folder.resolve()] > 1:
            raise UserError(f"{folder}: it is given twice; allowed: each folder once")
        if name == HERE:
            raise UserError(f"{folder}: '{HERE}' means a machine without a name; allowed: any other name")


def _read_run(folder: Path) -> pa.Table:
    table = folder / "measurements.parquet"
    files = sorted((folder / "cells").rglob("trial-*.parquet"))
    if not table.is_file() and not files:
        raise UserError(
            f"{folder}: it has neither measurements.parquet nor rows in cells/; allowed: the results folder of a run"
        )
    rows = read_arrow_table(table, COPY_AGAIN) if table.is_file() else collect_rows(files)
    if not len(rows):
        raise UserError(f"{folder}: it contains no rows; allowed: the results folder of a run")
    try:
        check_environments(rows, several_hosts=True)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    return rows


def _names(table: pa.Table, name: str | None) -> dict[str, str]:
    machines = table["machine"].unique().to_pylist()
    if machines == [HERE]:
        hosts = sorted(filter(None, table["hostname"].unique().to_pylist()))
        return {HERE: (name or shortened(hosts) or "unknown").strip()}
    return {machine: f"{name}-{machine}" if name and len(machines) > 1 else name or machine for machine in machines}

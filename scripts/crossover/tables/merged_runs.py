"""Results folders of several machines joined into one table, in which the machine is an axis.

Only pyarrow is needed, so that the workflow can look into the folders before it knows its jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.words import DEVICES, FLAGS, HERE, is_cpu
from crossover.errors import UserError
from crossover.reading import check_readable, read_each
from crossover.tables.columns import SCHEMA_VERSION, arrow_schema
from crossover.tables.frames import CELL_AXES, read_trials
from crossover.tables.guards import check_environments

NEEDED = [*(axis for axis in CELL_AXES if axis != "machine"), "trial", "status", "step_time_s", "schema_version"]
"""The columns without which rows say nothing; any other that a run lacks is empty in the joined table."""

OLDEST_VERSION = 2
"""Of rows that are read: since then columns were added, and none changed its meaning."""

AGAIN = "copy it anew, or measure again with this version"

HOW_TO_NAME = "name them, as --config merge='{laptop: results_a, h200: results_b}'"


@dataclass(frozen=True)
class MergedRun:
    """A results folder to be joined with others, and the name of its machine if the config gives one."""

    folder: str
    name: str | None = None

    @property
    def files(self) -> list[Path]:
        """Its table of trials; or, of a run that was never collected, the rows in its cells/. Raises UserError."""
        table = Path(self.folder, "measurements.parquet")
        found = [table] if table.is_file() else sorted(Path(self.folder, "cells").rglob("trial-*.parquet"))
        if not found:
            raise UserError(
                f"merge: {self.folder} has neither measurements.parquet nor rows in cells/; allowed: the results "
                "folder of a run"
            )
        return found

    @property
    def provenance(self) -> Path:
        """Where its own report says where its numbers come from; a run that was never reported has no such file."""
        return Path(self.folder, "provenance.json")

    @property
    def studies_and_devices(self) -> list[tuple[str, str]]:
        """What was measured there: studies, each with its devices, found without reading rows one by one."""
        files = self.files
        if files[0].parent == Path(self.folder):
            rows = read_trials(files[0], ["study", "device"], AGAIN, [])
            pairs = rows.group_by(["study", "device"], use_threads=False).aggregate([])
            return [(row["study"], row["device"]) for row in pairs.to_pylist()]
        parts = [file.relative_to(self.folder).parts for file in files]  # cells, study, ..., device, trial
        return list(dict.fromkeys((part[1], part[-2]) for part in parts))


def merged_runs(merge: Sequence[str] | Mapping[str, str] | None, results: str) -> list[MergedRun]:
    """The folders that the config names; `results` is where the joined ones go. Raises UserError."""
    runs = (
        [MergedRun(folder.rstrip("/"), str(name)) for name, folder in merge.items()]
        if isinstance(merge, Mapping)
        else [MergedRun(folder.rstrip("/")) for folder in merge or ()]
    )
    places = Counter(Path(run.folder).resolve() for run in runs)
    for run in runs:
        place = Path(run.folder).resolve()
        if place == Path(results).resolve():
            raise UserError(f"merge: {run.folder} is where the joined results go; allowed: the folders of runs")
        if places[place] > 1:
            raise UserError(f"merge: {run.folder} is named twice; allowed: each folder once")
        if run.name == HERE:
            raise UserError(f"merge: '{HERE}' stands for a machine without a name; allowed: any other name")
    return runs


def measured_there(runs: Sequence[MergedRun], studies: Path) -> dict[str, list[str]]:
    """The config's `studies` and `devices` for a report on all runs: what they hold, in the order of the runs.

    `studies` is the folder of the studies' files. Raises UserError naming a study that has none.
    """
    found = {run.folder: run.studies_and_devices for run in runs}
    for folder, pairs in found.items():
        if not pairs:
            raise UserError(f"merge: {folder} holds no rows; allowed: the results folder of a run")
        for study, _ in pairs:
            if not (studies / f"{study}.yaml").is_file():
                raise UserError(
                    f"merge: {folder} holds study '{study}', which has no file in config/studies/ here; copy it from "
                    "where it was measured"
                )
    names = dict.fromkeys(study for pairs in found.values() for study, _ in pairs)
    devices = {device.partition("-")[0] for pairs in found.values() for _, device in pairs}
    return {"studies": list(names), "devices": [device for device in DEVICES if device in devices]}


def join_runs(runs: Sequence[MergedRun]) -> pa.Table:
    """The rows of all runs, each with the name of its machine, in the order of the runs.

    A run that names its machines itself keeps their names; else a machine is called as the config says, or after its
    host, and after its device too where hosts have one name. Raises UserError for a row that cannot be read, for rows
    of one machine that do not belong together, and for a name that two runs share.
    """
    tables = [_read_run(run) for run in runs]
    hosts = [_words(table["hostname"]) for table in tables]
    shared = {host for host, count in Counter(hosts).items() if count > 1}
    joined = []
    for run, table, host in zip(runs, tables, hosts, strict=True):
        default = f"{host} {_hardware(table)}" if host in shared else host
        joined.append(_named(table, run.name, default))
    _check_names(runs, joined)
    return pa.concat_tables(joined)


def _read_run(run: MergedRun) -> pa.Table:
    schema = arrow_schema()
    rows = []
    found, torn = read_each(run.files, lambda file: read_trials(file, NEEDED, AGAIN))
    check_readable(torn)
    for file, table in found.items():
        versions = set(table["schema_version"].to_pylist())
        if versions - set(range(OLDEST_VERSION, SCHEMA_VERSION + 1)):
            raise UserError(
                f"{file}: rows of version {', '.join(map(str, sorted(versions, key=str)))}, but this workflow reads "
                f"versions {OLDEST_VERSION} to {SCHEMA_VERSION}; {AGAIN}"
            )
        table = _with_flags_of_today(table)
        for field in schema:
            if field.name not in table.column_names:
                table = table.append_column(field.name, pa.nulls(len(table), field.type))
        rows.append(table.select(schema.names))
    joined = pa.concat_tables(rows)
    try:
        check_environments(joined, several_hosts=True)
    except UserError as error:
        raise UserError(f"{run.folder}: {error}") from None
    return joined.sort_by([(axis, "ascending") for axis in (*CELL_AXES, "trial")])


def _with_flags_of_today(table: pa.Table) -> pa.Table:
    """The rows without flags that this version no longer raises, since they said nothing about a result."""
    if "flags" not in table.column_names:
        return table
    kept = [[flag for flag in flags or () if flag in FLAGS] for flags in table["flags"].to_pylist()]
    place = table.column_names.index("flags")
    return table.set_column(place, "flags", pa.array(kept, arrow_schema().field("flags").type))


def _words(column: Iterable[pa.Scalar]) -> str:
    """The values of a column, few of them: 'node1', 'node1 and node2', 'node1 and 3 more'."""
    names = sorted({str(value) for value in column if value.is_valid})
    if len(names) < 3:
        return " and ".join(names) or "unknown"
    return f"{names[0]} and {len(names) - 1} more"


def _hardware(table: pa.Table) -> str:
    """The name of the accelerator, or of the CPU where there is none."""
    names = zip(table["device"].to_pylist(), table["device_name"].to_pylist(), strict=True)
    known = {(is_cpu(device), name) for device, name in names if name}
    return min(known)[1] if known else ""


def _named(table: pa.Table, name: str | None, default: str) -> pa.Table:
    own = table["machine"].unique().to_pylist()
    if own == [HERE]:
        names = {HERE: (name or default).strip()}
    else:
        names = {machine: f"{name}-{machine}" if name and len(own) > 1 else name or machine for machine in own}
    place = table.column_names.index("machine")
    renamed = pa.array([names[machine] for machine in table["machine"].to_pylist()], pa.string())
    return table.set_column(place, table.schema.field("machine"), renamed)


def _check_names(runs: Sequence[MergedRun], tables: Sequence[pa.Table]) -> None:
    owners: dict[str, str] = {}
    for run, table in zip(runs, tables, strict=True):
        for machine in pc.unique(table["machine"]).to_pylist():
            if machine in owners:
                raise UserError(
                    f"merge: {owners[machine]} and {run.folder} are both of machine '{machine}'; {HOW_TO_NAME}"
                )
            owners[machine] = run.folder

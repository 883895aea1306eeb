"""Guard against results from different environments or hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.words import HERE
from crossover.errors import UserError
from crossover.tables.columns import Measurement, Row
from crossover.tables.rows import collect_rows

ENVIRONMENT_COLUMNS = (
    "hostname",
    "device_name",
    "cpu_model",
    "cpu_capability",
    "physical_cores",
    "threads",
    "driver_version",
    "cuda_version",
    "cudnn_version",
    "torch_version",
)
"""Columns compared between the rows of a device. A host may have several identical GPUs, so UUIDs are left out."""

SETTING_COLUMNS = (
    "device_memory_bytes",
    "mig",
    "power_limit_w",
    "sm_clock_max_mhz",
    "cgroup_cpus",
    "turbo",
    "governor",
)
"""Columns compared only between runs. Identical hosts report slightly different `memory_bytes`, so it is left out."""

HOST_COLUMNS = ("hostname", "cpu_model")
"""Columns compared between the rows of a machine. A GPU's trials may use only a share of the cores, so numbers of
cores are left out.
"""

SEVERAL_HOSTS = "set cluster.several_hosts to true if only the names of hosts differ"


def matching_rows(
    paths: Sequence[Path],
    several_hosts: bool,
    record: type[Row] = Measurement,
    processes: int = 1,
) -> pa.Table:
    """`collect_rows` for trials (or trainings), checked by `check_environments`; raises UserError."""
    rows = collect_rows(paths, record, processes)
    check_environments(rows, several_hosts)
    return rows


def differing_environments(
    first: pd.DataFrame, second: pd.DataFrame, columns: Sequence[str] = (*ENVIRONMENT_COLUMNS, *SETTING_COLUMNS)
) -> list[str]:
    """The columns in which the environments of two runs differ, with their values and the affected devices."""
    columns = [column for column in columns if column in first.columns and column in second.columns]
    devices: dict[str, list[str]] = {}
    for device in first["device"].unique():
        # Without the conversion, an integer in a column with nulls would be shown as 2.0 instead of 2.
        sides = [run.loc[run["device"] == device, columns].convert_dtypes() for run in (first, second)]
        for column in columns if len(sides[1]) else []:
            values = [sorted({"none" if pd.isna(value) else str(value) for value in side[column]}) for side in sides]
            if values[0] != values[1]:
                text = f"{column}: {', '.join(values[0])} against {', '.join(values[1])}"
                devices.setdefault(text, []).append(device)
    return [f"{text} ({', '.join(affected)})" for text, affected in devices.items()]


def check_environments(rows: pa.Table, several_hosts: bool) -> None:
    """Raise UserError if a device's rows come from different environments, or a machine's rows from different hosts."""
    columns = [name for name in compared_columns(ENVIRONMENT_COLUMNS, several_hosts) if name in rows.column_names]
    for group in rows.group_by(["machine", "device"]).aggregate([]).to_pylist():
        machine, device = group["machine"], group["device"]
        of_device = rows.filter((pc.field("machine") == machine) & (pc.field("device") == device))
        values_of = {column: of_device[column].unique().to_pylist() for column in columns}
        differing = [f"{name} ({', '.join(map(str, values))})" for name, values in values_of.items() if len(values) > 1]
        if differing:
            raise UserError(
                f"the rows of device '{device}'{_of_machine(machine)} come from different environments: "
                f"{'; '.join(differing)}; delete the rows of one, or use another results folder"
                + ("" if several_hosts else f", or {SEVERAL_HOSTS}")
            )
    check_hosts([rows], several_hosts)


def check_hosts(tables: Sequence[pa.Table], several_hosts: bool) -> None:
    """Raise UserError if the rows of a machine, in all tables together, come from different hosts."""
    hosts_of: dict[tuple[str, str], dict[str, list[str]]] = {}
    for column in compared_columns(HOST_COLUMNS, several_hosts):
        for table in (table for table in tables if column in table.column_names):
            groups = table.group_by(["machine", "device", column]).aggregate([])
            for group in groups.filter(pc.is_valid(groups[column])).to_pylist():
                hosts = hosts_of.setdefault((group["machine"], column), {})
                hosts.setdefault(group[column], []).append(group["device"])
    for (machine, column), hosts in hosts_of.items():
        if len(hosts) > 1:
            values = ", ".join(f"{host} for {' and '.join(dict.fromkeys(devices))}" for host, devices in hosts.items())
            raise UserError(
                f"the rows{_of_machine(machine)} come from different hosts: {column} ({values}); measure all devices "
                "on one host, give each host its own results folder, or name kinds of nodes by cluster.classes"
                + ("" if several_hosts else f"; {SEVERAL_HOSTS}")
            )


def compared_columns(columns: Sequence[str], several_hosts: bool) -> list[str]:
    """The columns, without the host's name if `several_hosts`."""
    return [column for column in columns if column != "hostname" or not several_hosts]


def _of_machine(machine: str) -> str:
    return "" if machine == HERE else f" of machine '{machine}'"

"""Guard against mixed results: the rows of a device must come from the same environment.

All rows of a machine, whatever their device, must come from the same host, or from several of the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.words import HERE
from crossover.config.workloads import NULL
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
"""Columns that must be the same in all rows of a device, which may come from any of several identical GPUs."""

SETTING_COLUMNS = (
    "device_memory_bytes",
    "mig",
    "power_limit_w",
    "sm_clock_max_mhz",
    "cgroup_cpus",
    "turbo",
    "governor",
)
"""More columns that affect times, compared only between runs. The host's memory is left out, since identical
hosts report slightly different sizes."""

HOST_COLUMNS = ("hostname", "cpu_model")
"""Columns that must be the same in all rows of a machine. Cores are excluded, since the rows of a GPU have only
a share of the host's."""


def matching_rows(
    paths: Sequence[Path],
    several_hosts: bool,
    record: type[Row] = Measurement,
    processes: int = 1,
) -> pa.Table:
    """The rows of trials (or trainings) in all files, joined by `collect_rows`. Raises UserError if a file is
    unreadable, or if rows of a device come from different environments.
    """
    rows = collect_rows(paths, record, processes)
    check_environments(rows, several_hosts)
    return rows


def differing_environments(
    first: pd.DataFrame, second: pd.DataFrame, columns: Sequence[str] = (*ENVIRONMENT_COLUMNS, *SETTING_COLUMNS)
) -> list[str]:
    """The fields in which the environments of two runs differ, with their values and the devices affected. Fields
    missing from a run's table are ignored, as are devices measured in only one run.
    """
    columns = [column for column in columns if column in first.columns and column in second.columns]
    devices: dict[str, list[str]] = {}
    for device in first["device"].unique():
        # An integer column would show as 2.0 on the side that contains a null.
        sides = [run.loc[run["device"] == device, columns].convert_dtypes() for run in (first, second)]
        for column in columns if len(sides[1]) else []:
            values = [sorted({"none" if pd.isna(value) else str(value) for value in side[column]}) for side in sides]
            if values[0] != values[1]:
                text = f"{column}: {', '.join(values[0])} against {', '.join(values[1])}"
                devices.setdefault(text, []).append(device)
    return [f"{text} ({', '.join(concerned)})" for text, concerned in devices.items()]


def check_environments(rows: pa.Table, several_hosts: bool) -> None:
    """Raise UserError naming the fields in which the rows of a machine differ; hosts may, if `several_hosts`.

    Rows of different devices may differ in everything except their host. Fields missing from the rows are ignored. The
    `null` workload is treated separately: its rows do not involve torch, which most fields are about.
    """
    if "workload" in rows.column_names:
        is_null = pc.equal(pc.fill_null(rows["workload"], ""), NULL)
        _check_alike(rows.filter(is_null), several_hosts)
        _check_alike(rows.filter(pc.invert(is_null)), several_hosts)
    else:
        _check_alike(rows, several_hosts)
    check_hosts([rows], several_hosts)


def check_hosts(tables: Sequence[pa.Table], several_hosts: bool) -> None:
    """Raise UserError if the rows of a machine, in all tables together, come from different hosts.

    Host names may differ if `several_hosts`, but CPU models may not. Unknown values are ignored.
    """
    hosts_of: dict[tuple[str, str], dict[str, list[str]]] = {}
    for column in host_columns(several_hosts):
        for table in (table for table in tables if column in table.column_names):
            sides = table.select(["machine", "device", column]).group_by(["machine", "device", column]).aggregate([])
            for side in sides.filter(pc.is_valid(sides[column])).to_pylist():
                hosts = hosts_of.setdefault((side["machine"], column), {})
                hosts.setdefault(side[column], []).append(side["device"])
    for (machine, column), hosts in hosts_of.items():
        if len(hosts) > 1:
            whose = "" if machine == HERE else f" of machine '{machine}'"
            unlike = ", ".join(f"{host} for {' and '.join(dict.fromkeys(devices))}" for host, devices in hosts.items())
            raise UserError(
                f"the rows{whose} come from different hosts: {column} ({unlike}); measure all devices on one host, "
                "give each host its own results folder, or name kinds of nodes by cluster.classes"
                + ("; set cluster.several_hosts to true if only the names of hosts differ" * (not several_hosts))
            )


def host_columns(several_hosts: bool) -> tuple[str, ...]:
    """The columns that must be the same in all rows of a machine; host names may differ if `several_hosts`."""
    return tuple(column for column in HOST_COLUMNS if column != "hostname" or not several_hosts)


def _check_alike(rows: pa.Table, several_hosts: bool) -> None:
    passed_over = {"hostname"} if several_hosts else set()
    columns = [name for name in ENVIRONMENT_COLUMNS if name in rows.column_names and name not in passed_over]
    sides = rows.select(["machine", "device"]).group_by(["machine", "device"]).aggregate([]).to_pylist()
    for side in sides:
        machine, device = side["machine"], side["device"]
        side_rows = rows.filter((pc.field("machine") == machine) & (pc.field("device") == device))
        values = {column: side_rows[column].unique().to_pylist() for column in columns}
        unlike = [
            f"{column} ({', '.join(map(str, several))})" for column, several in values.items() if len(several) > 1
        ]
        if unlike:
            whose = f"device '{device}'" if machine == HERE else f"device '{device}' of machine '{machine}'"
            advice = ["delete the rows of one", "use another results folder"]
            advice += [] if several_hosts else ["set cluster.several_hosts to true if only the names of hosts differ"]
            raise UserError(
                f"the rows of {whose} come from different environments: {'; '.join(unlike)}; {', or '.join(advice)}"
            )

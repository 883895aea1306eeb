"""Guard against results that were measured under different conditions or on different hosts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

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
"""The device and what runs on it. A host may have several identical GPUs, so UUIDs are left out."""

SETTING_COLUMNS = (
    "device_memory_bytes",
    "mig",
    "power_limit_w",
    "sm_clock_max_mhz",
    "cgroup_cpus",
    "turbo",
    "governor",
)
"""Settings of the hardware. Identical hosts report slightly different `memory_bytes`, so it is left out."""

DEVICE_COLUMNS = (
    *ENVIRONMENT_COLUMNS,
    *SETTING_COLUMNS,
    *("operating_system", "python_version", "environment_variables"),
)
"""The conditions that must agree for times of a device to be compared, within a run and between runs.

`isolation` is none, since forks and fresh processes take as long: a trial without its server is a fresh process.
"""

CONDITIONS = {
    ("machine", "device"): DEVICE_COLUMNS,
    ("machine", "study"): ("effort",),
    ("machine", "study", "workload", "model"): ("measurement_key", "packages"),
    ("machine", "study", "workload", "execution", "device"): ("plan_key",),
}
"""The columns with one value each among the rows that agree in the given axes.

A null matches any value, since it is not known there. `plan_key` stands for the model's code: `model_key` may also
count files that change during a run, such as its log.
"""

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
    first: pd.DataFrame, second: pd.DataFrame, columns: Sequence[str] = DEVICE_COLUMNS
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
    """Raise UserError if rows differ in one of CONDITIONS, or if a machine's rows come from different hosts."""
    for axes, columns in CONDITIONS.items():
        names = [name for name in compared_columns(columns, several_hosts) if name in rows.column_names]
        if not names or not {*axes} <= {*rows.column_names}:
            continue
        counts = rows.group_by(list(axes)).aggregate([(name, "count_distinct") for name in names]).to_pylist()
        for group in counts:
            differing = [name for name in names if group[f"{name}_count_distinct"] > 1]
            if differing:
                raise UserError(_different(rows, {axis: group[axis] for axis in axes}, differing, several_hosts))
    check_hosts([rows], several_hosts)


def check_keys(rows: pd.DataFrame, expected: Collection[str]) -> None:
    """Raise UserError if a row was measured with another key than those of the plan; a null matches any key."""
    known = rows[rows["plan_key"].notna()]
    others = known[~known["plan_key"].isin(expected)]
    if expected and len(others):
        row = others.iloc[0]
        raise UserError(
            f"{len(others)} of {len(rows)} rows were measured with other settings, code or hardware than the plan's: "
            f"study '{row['study']}' on {row['device']} has plan_key {row['plan_key']}, and plan.json "
            f"{' or '.join(sorted(expected))[:67]}; run the same command again to measure them again, or delete them"
        )


def _different(rows: pa.Table, group: Mapping[str, Any], differing: Sequence[str], several_hosts: bool) -> str:
    """The message for the rows of a group, with the values of the columns in which they differ."""
    for axis, value in group.items():
        rows = rows.filter(pc.is_null(rows[axis]) if value is None else pc.equal(rows[axis], value))
    texts = [f"{name} ({_values_text(rows[name].unique().drop_null().to_pylist())})" for name in differing]
    of_study = f"of study '{group['study']}'" if "study" in group else ""
    of_device = f"of device '{group['device']}'" if "device" in group else ""
    of_rows = " ".join(filter(None, [of_study, of_device])) + _of_machine(group.get("machine", HERE))
    hosts = f", or {SEVERAL_HOSTS}" if "hostname" in differing and not several_hosts else ""
    what = "environments" if "study" not in group else "settings" if "effort" in differing else "code or conditions"
    return (
        f"the rows {of_rows} come from different {what}: {'; '.join(texts)}; "
        f"delete the rows of one, or use another results folder{hosts}"
    )


def _values_text(values: Sequence[Any]) -> str:
    """The values of a column; of JSON objects, only the entries that differ."""
    try:
        objects = [json.loads(value) for value in values]
        names = sorted({name for each in objects for name in each})
    except (TypeError, ValueError):
        return ", ".join(map(str, values))
    differing = [name for name in names if len({str(each.get(name)) for each in objects}) > 1]
    return " against ".join(
        ", ".join(f"{name} {each[name]}" if name in each else f"no {name}" for name in differing) for each in objects
    )


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
    """The columns, without the names of host and kernel if `several_hosts`."""
    return [column for column in columns if column not in ("hostname", "operating_system") or not several_hosts]


def _of_machine(machine: str) -> str:
    return "" if machine == HERE else f" of machine '{machine}'"

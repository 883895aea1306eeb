"""What is known of each machine that measured, as its rows have it: one value, a span, or each value and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from crossover.config.words import HERE
from crossover.figures.style import bytes_text, device_label, number_text
from crossover.tables.columns import Measurement

GROUPS = {
    "Host": (
        *("operating_system", "cpu_model", "physical_cores", "logical_cpus", "cgroup_cpus", "numa_nodes"),
        *("memory_bytes", "cpu_capability", "amx", "avx512_bf16", "governor", "turbo"),
    ),
    "Accelerator": (
        *("device_uuid", "device_memory_bytes", "mig", "power_limit_w"),
        *("sm_clock_default_mhz", "sm_clock_max_mhz"),
    ),
    "Software": (
        *("torch_version", "cuda_version", "cudnn_version", "driver_version", "python_version"),
        *("packages", "crossover_version", "code_version"),
    ),
    "How it ran": (
        *("started_at", "threads", "interop_threads", "isolation", "attempts", "lease_wait_s"),
        *("memory_source", "energy_source"),
    ),
    "What went on beside it": (
        *("load_before", "load_after", "others_cpus", "cpu_pressure_share", "steal_share", "cgroup_throttled_s"),
        *("foreign_processes", "leased_beside", "sm_clock_before_mhz", "sm_clock_after_mhz"),
        *("temperature_before_c", "temperature_after_c", "throttle_reasons", "slowdown_s", "power_capped_s"),
    ),
}
"""The columns that are shown, in groups."""

DOCS = {column.name: column.metadata for column in fields(Measurement)}

MOST_VALUES = 8
"""Of more different values than these, the rest is counted."""

NO_COMMIT = "not recorded"


def machine_facts(tables: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Each device of each host: `device`, `host`, `rows` (trials and trainings), and `groups` of facts.

    A fact is a column's description and its value in words; what no row knows is left out. The CPU on fewer cores
    counts as the CPU.
    """
    columns = ["machine", "device", "device_name", "hostname", *(name for names in GROUPS.values() for name in names)]
    filled = [table.reindex(columns=columns).astype(object) for table in tables if len(table)]
    if not filled:
        return []
    rows = pd.concat(filled)
    rows["device"] = rows["device"].str.partition("-")[0]
    rows["machine"] = rows["machine"].fillna(HERE)
    found = []
    for key, own in rows.groupby(["machine", "device", "device_name", "hostname"], sort=False, dropna=False):
        machine, device, name, host = (str(value) if isinstance(value, str) else None for value in key)
        groups = {
            title: {column: text for column in names if (text := column_text(own[column], column))}
            for title, names in GROUPS.items()
        }
        found.append(
            {
                "device": device_label(str(device), name, str(machine)),
                "host": host or "",
                "rows": len(own),
                "groups": groups,
            }
        )
    return found


def fact_rows(machines: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[str, str, list[str]]]]:
    """The facts of several machines side by side: for each group its columns, their descriptions and each's value."""
    table = {}
    for title, names in GROUPS.items():
        texts = {column: [machine["groups"][title].get(column, "") for machine in machines] for column in names}
        table[title] = [
            (column, str(DOCS[column]["doc"]).replace("`", ""), own) for column, own in texts.items() if any(own)
        ]
    return table


def column_text(values: pd.Series, column: str) -> str:
    """The values of one column in words; '' where none is known."""
    known = values.dropna()
    if known.empty:
        return ""
    unit = str(DOCS[column]["unit"])
    # Text, and counts and switches that differ little, are worth each of their values.
    counts = known.map(lambda value: _value_text(value, unit)).value_counts(sort=False)
    if len(counts) == 1:
        return str(counts.index[0])
    if pd.api.types.is_numeric_dtype(numbers := known.infer_objects()) and not pd.api.types.is_bool_dtype(numbers):
        return f"{_value_text(numbers.min(), unit)} to {_value_text(numbers.max(), unit)}"
    if column == "started_at":
        return f"{known.min()} to {known.max()}"
    shown = [f"{text} ({count:,})" for text, count in counts.head(MOST_VALUES).items()]
    if len(counts) > MOST_VALUES:
        shown.append(f"and {len(counts) - MOST_VALUES:,} more")
    return "; ".join(shown)


def _value_text(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if pd.api.types.is_list_like(value):
        return ", ".join(map(str, value)) or "none"
    if unit == "B":
        return bytes_text(value)
    number = f"{value:g}" if float(value).is_integer() else number_text(float(value))
    return f"{number} {unit}".strip()

"""What is known of each machine that measured: one value, a span, or each value and how many rows say it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from crossover.config.words import BASELINE, HERE
from crossover.tables.columns import Measurement
from crossover.tables.labels import device_label
from crossover.text import bytes_text, number_text

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
        *("memory_source", "energy_source", "backend_settings", "effort"),
    ),
    "What went on beside it": (
        *("load_before", "load_after", "others_cpus", "host_others_cpus", "cpu_pressure_share", "steal_share"),
        *("cgroup_throttled_s", "foreign_processes", "foreign_gpu_share", "leased_beside"),
        *("sm_clock_before_mhz", "sm_clock_after_mhz"),
        *("temperature_before_c", "temperature_after_c", "throttle_reasons", "slowdown_s", "power_capped_s"),
    ),
}
"""The columns that are shown, in groups."""

VERSIONS = [name for name in GROUPS["Software"] if name != "packages"]

COLUMNS = [name for names in GROUPS.values() for name in names]
METADATA = {column.name: column.metadata for column in fields(Measurement)}
DOCS = {name: str(METADATA[name]["doc"]).replace("`", "") for name in COLUMNS}

MOST_VALUES = 8
"""Of more different values than these, the rest is counted."""


def machine_facts(tables: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Each device of each host, accelerators first: `device`, `host`, `rows`, and `facts` as text by column.

    What no row knows is empty. The CPU on fewer cores counts as the CPU.
    """
    keys = ["machine", "device", "device_name", "hostname"]
    filled = [table.reindex(columns=[*keys, *COLUMNS]).astype(object) for table in tables if len(table)]
    if not filled:
        return []
    rows = pd.concat(filled, ignore_index=True)
    rows["device"] = rows["device"].str.partition("-")[0]
    rows["machine"] = rows["machine"].fillna(HERE)
    # A trial that ended before it knew where it ran says less than the others on its device.
    rows[keys] = rows[keys].where(
        rows["device_name"].notna(), rows.groupby(["machine", "device"])[keys].transform("first")
    )
    found = []
    for key, own in rows.groupby(keys, sort=False, dropna=False):
        machine, device, name, host = (str(value) if isinstance(value, str) else None for value in key)
        facts = {column: _column_text(own[column], column) for column in COLUMNS}
        label = device_label(str(device), name, str(machine))
        found.append({"device": label, "host": host or "", "rows": len(own), "cpu": device == BASELINE, "facts": facts})
    return sorted(found, key=lambda machine: machine["cpu"])


def hosts_elsewhere(machines: Sequence[Mapping[str, Any]], here: str) -> str | None:
    """The other hosts that measured, as a text; None if there are none. `machines` is what `machine_facts` found."""
    hosts = sorted({machine["host"] for machine in machines} - {"", here})
    if not hosts:
        return None
    return " and ".join(hosts) if len(hosts) < 3 else f"{hosts[0]} and {len(hosts) - 1} more"


def differing_software(measurements: pd.DataFrame) -> list[dict[str, str]]:
    """What differs between machines beside their hardware: `what`, and `each` machine with its value."""
    found = []
    measurements = measurements.reset_index(drop=True)
    for what, values in _software(measurements).items():
        known = values.dropna().astype(str).groupby(measurements["machine"], sort=False)
        texts = {str(machine): " and ".join(sorted(own.unique())) for machine, own in known}
        if len(set(texts.values())) > 1:
            found.append({"what": what, "each": ", ".join(f"{text} on {machine}" for machine, text in texts.items())})
    return found


def _software(measurements: pd.DataFrame) -> dict[str, pd.Series]:
    """Columns by what they hold; each package, and each number of the effort, is a column of its own."""
    found = {DOCS[column].partition(",")[0]: measurements[column] for column in VERSIONS}
    for column, word in (("packages", "version of {}"), ("effort", "effort {}")):
        texts = measurements[column].dropna()
        mappings = texts.map({text: json.loads(text) for text in texts.unique()})
        for key in dict.fromkeys(key for mapping in mappings for key in mapping):
            if key not in ("python", "torch"):  # these have columns
                found[word.format(key)] = mappings.map(lambda mapping, key=key: mapping.get(key))
    return found


def _column_text(values: pd.Series, column: str) -> str:
    """The values of one column in words; '' where none is known."""
    known = values.dropna()
    if known.empty:
        return ""
    unit = str(METADATA[column]["unit"])
    # Text, and counts and switches that differ little, are worth each of their values.
    counts = known.map(lambda value: _value_text(value, unit)).value_counts(sort=False)
    if len(counts) == 1:
        return str(counts.index[0])
    numbers = known.infer_objects()
    if pd.api.types.is_numeric_dtype(numbers) and not pd.api.types.is_bool_dtype(numbers):
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

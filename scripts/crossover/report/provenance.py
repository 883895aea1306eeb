"""Provenance: the hardware, software, inputs and commands behind a run's numbers."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from crossover.config.layers import joined, read_layers
from crossover.config.study import Study, written
from crossover.config.words import BASELINE, HERE, is_cpu
from crossover.files import sha256_of
from crossover.home import IS_INSTALLED, NAME, ROOT
from crossover.machine.installed import requirement_of
from crossover.machine.invocation import Checkout, Invocation, find_checkout
from crossover.tables.columns import Measurement
from crossover.tables.labels import device_label
from crossover.text import bytes_text, number_text, shortened

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
    "Settings": (
        *("started_at", "threads", "interop_threads", "isolation", "attempts", "lease_wait_s"),
        *("memory_source", "energy_source", "backend_settings", "effort"),
    ),
    "Conditions": (
        *("load_before", "load_after", "others_cpus", "host_others_cpus", "cpu_pressure_share", "steal_share"),
        *("cgroup_throttled_s", "foreign_processes", "foreign_gpu_share", "leased_beside"),
        *("sm_clock_before_mhz", "sm_clock_after_mhz"),
        *("temperature_before_c", "temperature_after_c", "throttle_reasons", "slowdown_s", "power_capped_s"),
    ),
}
"""The columns of trials that the page shows for each device of each host."""

VERSIONS = [name for name in GROUPS["Software"] if name != "packages"]

COLUMNS = [name for names in GROUPS.values() for name in names]
METADATA = {column.name: column.metadata for column in fields(Measurement)}
DOCS = {name: str(METADATA[name]["doc"]).replace("`", "") for name in COLUMNS}

MOST_VALUES = 8
"""Maximum number of values listed for a column. Further values are only counted."""

PACKAGES = (
    *("snakemake", "pandas", "numpy", "scipy", "pyarrow", "scikit-learn", "matplotlib", "seaborn", "jinja2"),
    *("pyyaml", "torch"),
)

NEEDED = {"made_at": str, "code": dict, "studies": dict, "rerun": list, "files": list, "runs": list}
"""Keys of provenance.json that the page of merged runs needs; an edited file or another version's may lack them."""


def provenance(
    tables: Sequence[pd.DataFrame],
    config: Mapping[str, Any] | None,
    studies: Mapping[str, Study],
    invocation: Invocation | None,
    files: Iterable[Path],
    folder: Path,
    made_at: str,
) -> dict[str, Any]:
    """The content of provenance.json, to which `write_report` adds merged runs, progress and problems.

    `tables` are the trials and the trainings. `config` and `studies` are completed with defaults; the config is None
    for merged runs. `files` that exist are listed with checksums and paths relative to `folder`, where the page is.
    """
    checkout = find_checkout() if invocation is None else invocation.checkout
    commands = [command for table in tables if "command" in table for command in table["command"].dropna().head(1)]
    facts = {
        "made_at": made_at,
        "measured_on": _dates_of(tables),
        "run": invocation
        and {
            "command": invocation.command,
            "folder": invocation.folder,
            "in_checkout": Path(invocation.folder) == ROOT,
            "on_a_gpu": asdict(
                invocation.elsewhere("gpu", on_all_devices(config or {}, invocation), _files_of_models(studies))
            ),
            "again": invocation.into("again"),
        },
        "code": asdict(checkout) | {"code_version": checkout.code_version},
        "measured_by": measured_by(tables),
        "analysed_with": {"Python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "machines": machine_facts(tables),
        "files": [_file_facts(path, folder) for path in files if path.is_file()],
        "config": config,
        "studies": {name: written(study) for name, study in studies.items()},
        "sources": _sources(studies),
        "example": commands[0] if commands else None,
        "rerun": rerun(checkout, invocation),
    }
    # Converts tuples and NumPy numbers to JSON types.
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=_plain, allow_nan=False))
    return plain


def _dates_of(tables: Sequence[pd.DataFrame]) -> str | None:
    """The date of the measurements, or the first and the last one; None without measurements."""
    started = [str(start)[:10] for table in tables if "started_at" in table for start in table["started_at"].dropna()]
    return " to ".join(sorted({min(started), max(started)})) if started else None


def _files_of_models(studies: Mapping[str, Study]) -> list[str]:
    """The files of users' models and tables."""
    models = [study.user_model for study in studies.values() if study.user_model]
    files = [model.origin for model in models] + [model.table.file for model in models if model.table]
    return [path for path in dict.fromkeys(files) if Path(path).is_absolute()]


def on_all_devices(config: Mapping[str, Any], invocation: Invocation) -> dict[str, str]:
    """Changes of the config that cancel a choice of devices, wherever it was made: in a file or in `overrides`.

    A study keeps the devices of its own file, and those among which an override names an accelerator.
    """
    changes = {} if config.get("devices", "auto") == "auto" else {"devices": "auto"}
    selected = config.get("overrides") or {}
    if not config.get("model"):  # a file may have overrides for studies of other runs
        selected = {name: keys for name, keys in selected.items() if name in config["studies"]}
    limited = [name for name, keys in selected.items() if keys.get("devices") and all(map(is_cpu, keys["devices"]))]
    if limited:
        given = invocation.given("overrides")
        ((_, entries),) = read_layers([], [f"overrides={given}"] if given else [])
        freed = joined(entries.get("overrides") or {}, {name: {"devices": None} for name in limited})
        changes["overrides"] = json.dumps(freed)
    return changes


def rerun(checkout: Checkout, invocation: Invocation | None) -> list[str]:
    """The commands that reproduce this report, as far as they were recorded.

    For a run in a checkout, they are for a new one or, without a remote, for the checkout. For a run in another folder,
    they are for that folder, or a copy of it beside which they make a checkout or install the package.
    """
    if IS_INSTALLED:
        command = [invocation.typed or invocation.command] if invocation else []
        return [shlex.join(["pip", "install", requirement_of(NAME)]), *command]
    # A remote that is a local folder is of no use to readers.
    remote = checkout.remote if checkout.remote and re.search("://|@", checkout.remote) else None
    clone = f"git clone {shlex.quote(remote)}" if remote and checkout.commit else None
    if invocation is None or Path(invocation.folder) == ROOT:
        commands = [f"{clone} crossover", "cd crossover"] if clone else []
        git, requirements = "git", "requirements.txt"
    else:
        root = shlex.quote(os.path.relpath(ROOT, invocation.folder))
        commands = [f"[ -d {root} ] || {clone} {root}"] if clone else []
        git, requirements = f"git -C {root}", f"{root}/requirements.txt"
    commands += [f"{git} checkout {checkout.commit}"] if checkout.commit else []
    return [*commands, f"pip install -r {requirements}", *([invocation.command] if invocation else [])]


def _file_facts(path: Path, folder: Path) -> dict[str, Any]:
    link = quote(Path(os.path.relpath(path, folder)).as_posix())
    return {"name": path.name, "link": link, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def measured_by(tables: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """The versions of the code that measured the rows; an unrecorded version is None."""
    columns = ["code_version", "crossover_version"]
    rows = pd.concat([table.reindex(columns=columns).astype(object) for table in tables])
    sizes = rows.groupby(columns, sort=False, dropna=False).size()
    return [
        {name: None if pd.isna(value) else value for name, value in zip(columns, key, strict=True)} | {"rows": count}
        for key, count in sizes.items()
        if isinstance(key, tuple)
    ]


def _sources(studies: Mapping[str, Study]) -> list[str]:
    named = [study.published and study.published.source for study in studies.values()]
    named += [claim.source for study in studies.values() for claim in study.claims]
    return [str(source) for source in dict.fromkeys(named) if source and source != "ours"]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def read_provenances(folders: Iterable[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Read the provenance of runs to be merged, given by name and folder.

    Returns each run's `name`, `folder`, `provenance` (None if missing or unreadable) and `caveat` (None if there is
    none). A run that was itself merged is followed by the runs in it.
    """
    runs = []
    for name, folder in folders:
        content, caveat = _read(folder)
        runs.append({"name": name, "folder": str(folder), "provenance": content, "caveat": caveat})
        runs += [{**run, "name": f"{name}, {run['name']}"} for run in (content or {}).get("runs", ())]
    return runs


def _read(folder: Path) -> tuple[dict[str, Any] | None, str | None]:
    path = folder / "provenance.json"
    if not path.is_file():
        return None, "no_file"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None, "unreadable"
    if not isinstance(content, dict) or not all(isinstance(content.get(key), kind) for key, kind in NEEDED.items()):
        return None, "unreadable"
    rows = folder / "measurements.parquet"
    checksums = [file.get("sha256") for file in content["files"] if file.get("name") == rows.name]
    differs = bool(checksums) and rows.is_file() and sha256_of(rows) not in checksums
    return content, "other_rows" if differs else None


def machine_facts(tables: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """Each device of each host, accelerators first, with its number of `rows`, and `facts` as text by column.

    A fact is one value, a range, or several values with their numbers of rows; it is empty if no row has it. The CPU on
    fewer cores counts as the CPU.
    """
    keys = ["machine", "device", "device_name", "hostname"]
    filled = [table.reindex(columns=[*keys, *COLUMNS]).astype(object) for table in tables if len(table)]
    if not filled:
        return []
    rows = pd.concat(filled, ignore_index=True)
    rows["device"] = rows["device"].str.partition("-")[0]
    rows["machine"] = rows["machine"].fillna(HERE)
    # A trial that ended before it recorded its host gets the host of another trial on the device.
    rows[keys] = rows[keys].where(
        rows["device_name"].notna(), rows.groupby(["machine", "device"])[keys].transform("first")
    )
    machines = []
    for key, machine_rows in rows.groupby(keys, sort=False, dropna=False):
        machine, device, name, host = (str(value) if isinstance(value, str) else None for value in key)
        facts = {column: _column_text(machine_rows[column], column) for column in COLUMNS}
        label = device_label(str(device), name, str(machine))
        machines.append(
            {"device": label, "host": host or "", "rows": len(machine_rows), "cpu": device == BASELINE, "facts": facts}
        )
    return sorted(machines, key=lambda machine: machine["cpu"])


def hosts_elsewhere(machines: Sequence[Mapping[str, Any]], here: str) -> str | None:
    """The hosts other than `here` in the result of `machine_facts`."""
    hosts = sorted({machine["host"] for machine in machines} - {"", here})
    return shortened(hosts) if hosts else None


def differing_software(measurements: pd.DataFrame) -> list[dict[str, str]]:
    """Differences in software and effort between machines."""
    differing = []
    measurements = measurements.reset_index(drop=True)
    for what, values in _software(measurements).items():
        by_machine = values.dropna().astype(str).groupby(measurements["machine"], sort=False)
        texts = {str(machine): " and ".join(sorted(rows.unique())) for machine, rows in by_machine}
        if len(set(texts.values())) > 1:
            differing.append(
                {"what": what, "each": ", ".join(f"{text} on {machine}" for machine, text in texts.items())}
            )
    return differing


def _software(measurements: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns to compare, by title."""
    columns = {DOCS[column].partition(",")[0]: measurements[column] for column in VERSIONS}
    for column, word in (("packages", "version of {}"), ("effort", "effort {}")):
        texts = measurements[column].dropna()
        mappings = texts.map({text: json.loads(text) for text in texts.unique()})
        for key in dict.fromkeys(key for mapping in mappings for key in mapping):
            if key not in ("python", "torch"):  # in VERSIONS
                columns[word.format(key)] = mappings.map(lambda mapping, key=key: mapping.get(key))
    return columns


def _column_text(values: pd.Series, column: str) -> str:
    """A fact as described in `machine_facts`."""
    present = values.dropna()
    if present.empty:
        return ""
    unit = str(METADATA[column]["unit"])
    counts = present.map(lambda value: _value_text(value, unit)).value_counts(sort=False)
    if len(counts) == 1:
        return str(counts.index[0])
    numbers = present.infer_objects()
    if pd.api.types.is_numeric_dtype(numbers) and not pd.api.types.is_bool_dtype(numbers):
        return f"{_value_text(numbers.min(), unit)} to {_value_text(numbers.max(), unit)}"
    if column == "started_at":
        return f"{present.min()} to {present.max()}"
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

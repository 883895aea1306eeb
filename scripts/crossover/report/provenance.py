"""Everything that is needed to doubt a number: what ran, on what, from which files, and how to run it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from crossover.machine.invocation import Checkout, Invocation, find_checkout
from crossover.report.machine_facts import machine_facts

PACKAGES = (
    *("snakemake", "pandas", "numpy", "scipy", "pyarrow", "scikit-learn", "matplotlib", "seaborn", "jinja2"),
    *("pyyaml", "torch"),
)
"""What made the tables, the figures and the page, and the torch that a job of theirs would use."""

NEEDED = {"made_at": str, "code": dict, "studies": dict, "rerun": list, "files": list, "runs": list}
"""What the page shows of it, with the type of each; a file of another version, or one that was edited, may lack it."""


def provenance(
    tables: Sequence[pd.DataFrame],
    config: Mapping[str, Any] | None,
    studies: Mapping[str, Mapping[str, Any]],
    invocation: Invocation | None,
    files: Iterable[Path],
    folder: Path,
    made_at: str,
) -> dict[str, Any]:
    """Plain values, as provenance.json has them and as the page shows them.

    `tables` are those of trials and of trainings; `config` and `studies` are completed with defaults; the config is
    None where runs were merged. Of `files`, those that are there are listed with their checksums, by their address
    from `folder`, where the page lies.
    """
    checkout = find_checkout() if invocation is None else invocation.checkout
    commands = [command for table in tables if "command" in table for command in table["command"].dropna().head(1)]
    found = {
        "made_at": made_at,
        "run": invocation and {"command": invocation.command, "folder": invocation.folder},
        "code": asdict(checkout) | {"code_version": checkout.code_version},
        "measured_by": _measured_by(tables),
        "analysed_with": {"Python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "machines": machine_facts(tables),
        "files": [_file_facts(path, folder) for path in files if path.is_file()],
        "config": config,
        "studies": {name: _without_rows(spec) for name, spec in studies.items()},
        "sources": _sources(studies),
        "example": commands[0] if commands else None,
        "rerun": rerun(checkout, invocation),
    }
    # Tuples and numpy's numbers become what JSON holds.
    plain: dict[str, Any] = json.loads(json.dumps(found, default=_plain, allow_nan=False))
    return plain


def rerun(checkout: Checkout, invocation: Invocation | None) -> list[str]:
    """The commands that make this report from nothing, as far as they are known."""
    commands = []
    if checkout.commit:
        # A folder of this machine is no place that a reader could clone.
        remote = checkout.remote if checkout.remote and re.search("://|@", checkout.remote) else None
        commands += [f"git clone {shlex.quote(remote)} crossover", "cd crossover"] if remote else []
        commands.append(f"git checkout {checkout.commit}")
    return [*commands, "pip install -r requirements.txt", *([invocation.command] if invocation else [])]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_facts(path: Path, folder: Path) -> dict[str, Any]:
    link = quote(Path(os.path.relpath(path, folder)).as_posix())
    return {"name": path.name, "link": link, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _measured_by(tables: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """How many rows each version of the code measured; None where a row does not say it."""
    columns = ["code_version", "crossover_version"]
    rows = pd.concat([table.reindex(columns=columns).astype(object) for table in tables])
    sizes = rows.groupby(columns, sort=False, dropna=False).size()
    return [
        {name: None if pd.isna(value) else value for name, value in zip(columns, key, strict=True)} | {"rows": count}
        for key, count in sizes.items()
        if isinstance(key, tuple)
    ]


def _sources(studies: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What the studies compare with, each once."""
    named = [(spec.get("published") or {}).get("source") for spec in studies.values()]
    named += [claim.get("source") for spec in studies.values() for claim in spec.get("claims") or ()]
    return [str(source) for source in dict.fromkeys(named) if source and source != "ours"]


def _without_rows(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A study's file without the published results, which have a file of their own."""
    published = spec["published"] and {key: value for key, value in spec["published"].items() if key != "rows"}
    return {**spec, "published": published}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def read_provenances(folders: Iterable[tuple[str, Path]]) -> list[dict[str, Any]]:
    """Each run's `name`, `folder`, its `provenance` (None: not known), and `doubt`: why not to rely on it.

    A run that was merged itself is followed by the runs that it holds.
    """
    return [run for name, folder in folders for run in _with_held(name, str(folder), *_read(folder))]


def _read(folder: Path) -> tuple[dict[str, Any] | None, str | None]:
    path = folder / "provenance.json"
    if not path.is_file():
        return None, "no_file"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None, "unreadable"
    if not isinstance(told, dict) or not all(isinstance(told.get(key), kind) for key, kind in NEEDED.items()):
        return None, "unreadable"
    rows = folder / "measurements.parquet"
    listed = [file.get("sha256") for file in told["files"] if file.get("name") == rows.name]
    others = bool(listed) and rows.is_file() and sha256_of(rows) not in listed
    return told, "other_rows" if others else None


def _with_held(name: str, folder: str, told: dict[str, Any] | None, doubt: str | None) -> list[dict[str, Any]]:
    held = told["runs"] if told else []
    return [
        {"name": name, "folder": folder, "provenance": told, "doubt": doubt},
        *({**run, "name": f"{name}, {run['name']}"} for run in held),
    ]

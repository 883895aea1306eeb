"""Where the numbers of merged runs come from: what each one's own provenance.json says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crossover.report.provenance import sha256_of

NEEDED = {"made_at": str, "code": dict, "studies": dict, "rerun": list, "files": list, "runs": list}
"""What the page shows of it, with the type of each; a file of another version, or one that was edited, may lack it."""


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

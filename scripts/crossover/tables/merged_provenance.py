"""Where the numbers of merged runs come from: what each one's own provenance.json says, carried along as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossover.report.page_files import sha256_of
from crossover.tables.merged_runs import MergedRun

NO_FILE = "its folder has no provenance.json, which a finished run's has"
NOT_READABLE = "its provenance.json cannot be read"
OTHER_ROWS = "its report was made of other rows than its measurements.parquet holds now"


def read_provenances(runs: Sequence[MergedRun]) -> list[dict[str, Any]]:
    """Of each run `name`, `folder`, its own `provenance` (None: not known), and in `doubt` why not to rely on it.

    A run that has a name keeps it; another is called as its folder. Without doubt, `doubt` is None.
    """
    return [{"name": run.name or run.folder, "folder": run.folder} | _read(run) for run in runs]


def _read(run: MergedRun) -> dict[str, Any]:
    if not run.provenance.is_file():
        return {"provenance": None, "doubt": NO_FILE}
    try:
        told = json.loads(run.provenance.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except (OSError, ValueError):
        told = None
    if not isinstance(told, dict):
        return {"provenance": None, "doubt": NOT_READABLE}
    rows = Path(run.folder, "measurements.parquet")
    listed = [fact.get("sha256") for fact in _entries(told.get("files")) if fact.get("name") == rows.name]
    is_of_others = bool(listed) and rows.is_file() and sha256_of(rows) not in listed
    return {"provenance": told, "doubt": OTHER_ROWS if is_of_others else None}


def joined_runs(facts: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The runs that a report joins, of what is known of its origin; none of an unmerged one."""
    known = facts.get("provenance")
    return known["runs"] if known else []


def merged_views(runs: Sequence[Mapping[str, Any]], within: str = "") -> Iterator[dict[str, Any]]:
    """What the page and the summary say of each run: what its provenance lacks is empty.

    `runs` are those of `read_provenances`; one that was merged itself is followed by the runs that it holds.
    """
    for run in runs:
        told = _mapping(run.get("provenance"))
        name = f"{within}{run.get('name') or run.get('folder') or 'unnamed'}"
        code, how = _mapping(told.get("code")), _mapping(told.get("run"))
        yield {
            "name": name,
            "doubt": run.get("doubt"),
            "partial": told.get("partial"),
            "tells_partial": "partial" in told,
            "is_known": bool(told),
            "made_at": told.get("made_at"),
            "folder": how.get("folder"),
            "command": how.get("command"),
            "commit": code.get("code_version"),
            "changed": _words(code.get("changed")),
            "analysed_with": _mapping(told.get("analysed_with")),
            "measured_by": _entries(told.get("measured_by")),
            "rerun": _words(told.get("rerun")),
            "config": _mapping(told.get("config")),
            "studies": _mapping(told.get("studies")),
        }
        yield from merged_views(_entries(told.get("runs")), f"{name}, ")


def completeness_notes(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of which of the runs something is missing, or may be; `runs` are those of `read_provenances`."""
    notes = []
    for view in merged_views(runs):
        if view["partial"]:
            notes.append(f"The run of {view['name']} had not finished when it was reported: {view['partial']}.")
        elif view["doubt"] or not view["tells_partial"]:
            why = view["doubt"] or "its provenance.json does not say"
            notes.append(f"How much of the run of {view['name']} has finished is not known: {why}.")
    return notes


def _mapping(value: Any) -> dict[str, Any]:
    """A file of another version, or one that was edited, may hold anything."""
    return value if isinstance(value, dict) else {}


def _entries(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else []

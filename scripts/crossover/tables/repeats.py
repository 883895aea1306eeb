"""Trials that were disturbed: which of them to measure again, and which of their rows counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.studies import Cell
from crossover.config.words import AXES, DISTURBED

CUT_SHORT = {"incomplete", "unchecked"}
"""Flags of a row that lacks what another row of its trial may have."""


def disturbed_trials(trials: pa.Table) -> dict[Cell, dict[int, list[str]]]:
    """The trials that something from outside disturbed: by cell and number, the flags that say so."""
    found: dict[Cell, dict[int, list[str]]] = defaultdict(dict)
    for row in trials.select([*AXES, "trial", "status", "flags"]).to_pylist():
        if flags := _disturbances(row):
            found[Cell(**{axis: row[axis] for axis in AXES})][row["trial"]] = flags
    return dict(found)


def least_disturbed(trials: pa.Table) -> pa.Table:
    """One row a trial: of those measured again, the repeat if it has a time and was less disturbed, else the first."""
    if pc.max(trials["repeat"]).as_py() in (None, 0):
        return trials
    rows = trials.select([*AXES, "trial", "repeat", "status", "flags", "others_cpus"]).to_pylist()
    counting: dict[tuple[Any, ...], int] = {}
    for place in sorted(range(len(rows)), key=lambda place: rows[place]["repeat"] or 0):
        row = rows[place]
        before = counting.setdefault(tuple(row[axis] for axis in (*AXES, "trial")), place)
        if _replaces(row, rows[before]):
            counting[tuple(row[axis] for axis in (*AXES, "trial"))] = place
    return trials.take(sorted(counting.values()))


def _replaces(row: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    if row["status"] != "ok" or CUT_SHORT.intersection(row["flags"] or ()).difference(before["flags"] or ()):
        return False
    return _degree(row) < _degree(before)


def _degree(row: Mapping[str, Any]) -> tuple[int, float]:
    """How much a trial was disturbed: by how many things, and by how many CPUs that others kept busy.

    Not by its time: to choose the faster of two would make a machine look faster than it is.
    """
    flags = _disturbances(row)
    return len(flags), (row["others_cpus"] or 0.0) if flags else 0.0


def _disturbances(row: Mapping[str, Any]) -> list[str]:
    flags = row["flags"] or () if row["status"] == "ok" else ()
    return [flag for flag in flags if flag in DISTURBED]

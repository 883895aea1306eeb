"""What the later trials of a cell are worth by its first one, the only one that is checked and profiled."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crossover.config.words import AXES, HOST_BOUND_SHARE

JUDGED = ("status", "reason", "flags")
"""The columns that the first trial may change."""

SIDE_BY_SIDE = "side_by_side"


def resting_on_first(trials: pa.Table) -> pa.Table:
    """Rows of trials; those that are ok beside a first trial that is not are `invalid`, or flagged `unchecked`.

    They are invalid where the first is and has a wrong answer, or none, as after a crash or a switch that was changed.
    They are unchecked where it is missing or ended before the check, or was disturbed and could not be checked.
    Those beside trials on other GPUs are flagged `side_by_side` where the first one's profile shows a step that mostly
    waits for the host.
    """
    sound = trials.filter((pc.field("trial") == 1) & (pc.field("status") == "ok"))
    alone = trials.filter(pc.field("leased_beside") > 0).num_rows == 0
    if alone and sound.num_rows == trials.group_by(list(AXES)).aggregate([]).num_rows:
        return trials
    rows = trials.select([*AXES, "trial", "answer", "leased_beside", "host_bound_share", *JUDGED]).to_pylist()
    firsts = {_cell(row): row for row in rows if row["trial"] == 1}
    judged = [_beside(_judged(row, firsts.get(_cell(row))), firsts.get(_cell(row))) for row in rows]
    for name in JUDGED:
        place = trials.column_names.index(name)
        field = trials.schema.field(name)
        trials = trials.set_column(place, field, pa.array([row[name] for row in judged], field.type))
    return trials


def _cell(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[axis] for axis in AXES)


def _judged(row: dict[str, Any], first: dict[str, Any] | None) -> dict[str, Any]:
    if row["trial"] == 1 or row["status"] != "ok":
        return row
    if first and (first["status"] == "ok" or first["answer"] == "right"):
        return row
    if first and first["status"] == "invalid" and first["answer"] != "unchecked":
        return {**row, "status": "invalid", "reason": first["reason"]}
    why = f"ended with status {first['status']}" if first else "is not among these rows"
    reason = row["reason"] or f"its first trial, which alone is checked, {why}"
    return {**row, "reason": reason, "flags": [*(row["flags"] or []), "unchecked"]}


def _beside(row: dict[str, Any], first: dict[str, Any] | None) -> dict[str, Any]:
    """The row, flagged if trials on other GPUs shared the host that its step waits for."""
    share = first["host_bound_share"] if first else None
    flags = row["flags"] or []
    if row["status"] != "ok" or not row["leased_beside"] or (share or 0) <= HOST_BOUND_SHARE or SIDE_BY_SIDE in flags:
        return row
    return {**row, "flags": [*flags, SIDE_BY_SIDE]}

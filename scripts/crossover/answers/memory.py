"""Answers on memory: peak use, cells that ran out, the setting that needs least, and the largest batch."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row
from crossover.config.words import BASELINE, DEVICES
from crossover.tables.frames import at_common_points, device_name_of, first_row, on_all_cores, records
from crossover.tables.labels import NAMED_AXES, device_label, name_by, varying

SETTINGS = ["variant", "precision", "execution"]
"""Axes that can be changed to save memory without changing the work of a step."""

NEARLY_FULL = 0.9
"""Share of a device's memory above which it counts as nearly full, since context and reserved memory add to the
tensors.
"""


def memory_answers(cells: pd.DataFrame) -> list[Row]:
    """One answer per accelerator of a study, or for the CPU if it has none; empty if no memory was measured."""
    answers = []
    for _, of_machine in on_all_cores(cells).groupby("machine", sort=False):
        devices = [device for device in DEVICES if (of_machine["device"] == device).any()]
        for device in [device for device in devices if device != BASELINE] or devices:
            of_device = of_machine[of_machine["device"] == device]
            with_peak = of_device[of_device["status"] == "ok"].dropna(subset=["peak_bytes"])
            lost = of_device[of_device["status"] == "oom"].sort_values(["size", "batch_size"])
            if len(with_peak) or len(lost):
                answers.append(_peak(of_device, with_peak, lost))
            if device != BASELINE:
                answers += _settings(of_device, with_peak)
    return answers


def _label(rows: pd.DataFrame) -> str:
    first = first_row(rows)
    return device_label(first["device"], device_name_of(rows), first["machine"])


def _peak(rows: pd.DataFrame, with_peak: pd.DataFrame, lost: pd.DataFrame) -> Row:
    named = varying(rows)
    most = first_row(with_peak.loc[[with_peak["peak_bytes"].idxmax()]]) if len(with_peak) else None
    capacity = rows["capacity_bytes"].min()
    capacity = None if pd.isna(capacity) else float(capacity)
    peak = None if most is None else float(most["peak_bytes"])
    if len(lost):
        status = "limit"
    elif not peak or not capacity:
        status = "unknown_capacity"
    else:
        status = "nearly_full" if peak / capacity > NEARLY_FULL else "no_limit"
    return {
        "kind": "memory",
        "machine": first_row(rows)["machine"],
        "device": _label(rows),
        "status": status,
        "value": peak,
        "unit": "B",
        "capacity": capacity,
        "place": "" if most is None else name_by(most, named),
        "lost": len(lost),
        "lost_place": name_by(first_row(lost), named or NAMED_AXES) if len(lost) else "",
        "trials": None if most is None else most["trials"],
    }


def _settings(rows: pd.DataFrame, with_peak: pd.DataFrame) -> list[Row]:
    """The settings that need the least and the most memory, at the largest size and batch size measured in all
    settings."""
    named = varying(with_peak, SETTINGS)
    if not named:
        return []
    keys = pd.Series(list(zip(*(with_peak[axis] for axis in named), strict=True)), with_peak.index)
    common = at_common_points(with_peak.assign(setting=keys), "setting")
    common = common[common["size"] == common["size"].max()]
    if common.empty:
        return []
    counts = common.groupby("batch_size")["setting"].nunique()
    common = common[common["batch_size"] == counts[counts == counts.max()].index.max()]
    peaks = common.groupby("setting", sort=False)["peak_bytes"].median().sort_values(kind="stable")
    if len(peaks) < 2:
        return []
    names = [name_by(dict(zip(named, setting, strict=True)), named) for setting in peaks.index]
    least, most = float(peaks.iloc[0]), float(peaks.iloc[-1])
    answer = {
        "kind": "memory_setting",
        "machine": first_row(rows)["machine"],
        "device": _label(rows),
        "status": "differ" if most > least else "alike",
        "value": least,
        "unit": "B",
        "capacity": most,
        "winner": names[0],
        "loser": names[-1],
        "place": name_by(first_row(common), ["size", "batch_size"]),
    }
    return [answer]


def largest_batch_answers(table: pd.DataFrame) -> list[Row]:
    """One answer for each search for the largest batch."""
    named = varying(table, [axis for axis in NAMED_AXES if axis != "batch_size"])
    return [
        {
            "kind": "largest_batch",
            "machine": row["machine"],
            "series": name_by(row, named),
            "device": device_label(row["device"], row["device_name"]),
            "unit": "rows",
            "capacity": row["memory_limit_bytes"],
            "reason": row["reason"],
            **_outcome(row),
        }
        for row in records(table)
    ]


def _outcome(row: dict[str, Any]) -> Row:
    if row["status"] == "oom":
        return {"status": "none_fits", "value": row["smallest_failing"]}
    if row["status"] != "ok":
        stopped = row["largest_fitting"] is not None
        return {"status": "stopped" if stopped else "not_found", "value": row["largest_fitting"]}
    return {"status": "all_fit" if row["smallest_failing"] is None else "fits", "value": row["largest"]}

"""Answers on memory: peak, cells that ran out of memory, the setting with the lowest peak, and the largest batch."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.answers.vocabulary import Row
from crossover.config.words import BASELINE, DEVICES
from crossover.statistics.intervals import EQUIVALENT
from crossover.tables.frames import at_common_points, device_name_of, first_row, on_all_cores, records
from crossover.tables.labels import NAMED_AXES, device_label, name_by, varying
from crossover.tables.registry import MEMORY_PARTS

SETTINGS = ["variant", "precision", "execution"]
"""Axes whose values are compared by their peak memory."""

NEARLY_FULL = 0.9
"""Share of a device's memory above which a peak nearly fills it; a peak omits the context and reserved memory."""

GROWTH = "growth"
"""Quantity of a peak that is only the growth of the process, which held the step's data before: a CPU without parts."""


def memory_answers(cells: pd.DataFrame) -> list[Row]:
    """Answers for each machine's accelerators or, if it has none, its CPU."""
    answers = []
    for machine, machine_cells in on_all_cores(cells).groupby("machine", sort=False):
        devices = [device for device in DEVICES if (machine_cells["device"] == device).any()]
        for device in [device for device in devices if device != BASELINE] or devices:
            device_cells = machine_cells[machine_cells["device"] == device]
            # Libraries with an allocator of their own leave that of torch at 0.
            with_peak = device_cells[(device_cells["status"] == "ok") & (device_cells["peak_bytes"] > 0)]
            lost = device_cells[device_cells["status"] == "oom"].sort_values(["size", "batch_size"])
            name = device_label(device, device_name_of(device_cells["device_name"]), str(machine))
            names = {"machine": machine, "device": name}
            if len(with_peak) or len(lost):
                answers.append(names | _peak_answer(device_cells, with_peak, lost))
            if device != BASELINE:
                answers += [names | answer for answer in _setting_answers(with_peak)]
    return answers


def _peak_answer(cells: pd.DataFrame, with_peak: pd.DataFrame, lost: pd.DataFrame) -> Row:
    named = varying(cells)
    largest = first_row(with_peak.loc[[with_peak["peak_bytes"].idxmax()]]) if len(with_peak) else None
    has_parts = largest is not None and all(largest[part] is not None for part in MEMORY_PARTS)
    grows = largest is not None and largest["device"] == BASELINE and not has_parts
    capacity = None if grows or cells["capacity_bytes"].isna().all() else float(cells["capacity_bytes"].min())
    peak = None if largest is None else float(largest["peak_bytes"])
    if len(lost):
        status = "limit"
    elif not peak or not capacity:
        status = "unknown_capacity"
    else:
        status = "nearly_full" if peak / capacity > NEARLY_FULL else "no_limit"
    return {
        "kind": "memory",
        "status": status,
        "quantity": GROWTH if grows else None,
        "value": peak,
        "unit": "B",
        "capacity": capacity,
        "place": "" if largest is None else name_by(largest, named),
        "lost": len(lost),
        "lost_place": name_by(first_row(lost), named or NAMED_AXES) if len(lost) else "",
        "trials": None if largest is None else largest["trials"],
    }


def _setting_answers(with_peak: pd.DataFrame) -> list[Row]:
    """The settings with the lowest and the highest peak, at the largest size that all settings have."""
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
    lowest, highest = float(peaks.iloc[0]), float(peaks.iloc[-1])
    return [
        {
            "kind": "memory_setting",
            "status": "better" if highest > lowest else EQUIVALENT,
            "value": lowest,
            "unit": "B",
            "capacity": highest,
            "winner": names[0],
            "loser": names[-1],
            "place": name_by(first_row(common), ["size", "batch_size"]),
        }
    ]


def largest_batch_answers(searches: pd.DataFrame) -> list[Row]:
    named = varying(searches, [axis for axis in NAMED_AXES if axis != "batch_size"])
    return [
        {
            "kind": "largest_batch",
            "machine": row["machine"],
            "series": name_by(row, named),
            "device": device_label(row["device"], row["device_name"]),
            "unit": "rows",
            "capacity": row["memory_limit_bytes"],
            "reason": row["reason"],
            **_search_result(row),
        }
        for row in records(searches)
    ]


def _search_result(search: dict[str, Any]) -> Row:
    if search["status"] == "oom":
        return {"status": "none_fits", "value": search["smallest_failing"]}
    if search["status"] != "ok":
        stopped = search["largest_fitting"] is not None
        return {"status": "stopped" if stopped else "not_found", "value": search["largest_fitting"]}
    return {"status": "all_fit" if search["smallest_failing"] is None else "fits", "value": search["largest_batch"]}

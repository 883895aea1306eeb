"""The rows of a comparison: every cell by device, and below each what others published of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.config.words import BASELINE, DEVICES
from crossover.figures.style import DEVICE_WORDS
from crossover.figures.views import StudyView
from crossover.tables.frames import records

PEAK = "peak_allocated_bytes"

Row = dict[str, Any]
ROW_COLUMNS = (
    "device",
    "label",
    "published",
    "status",
    "projected",
    "time_s",
    "time_low_s",
    "time_high_s",
    "memory_bytes",
    "error",
)
"""`label` sets the row apart within its device; times are of a run where the study has one, else of a step."""


def comparison_rows(view: StudyView) -> pd.DataFrame:
    """One row a cell in the grid's order and one a published result, which stands below the cell that it is of.

    A published result of no cell here comes last among those of its device; one that states no device has no place.
    Columns as `ROW_COLUMNS`.
    """
    published = [] if view.published_results is None else records(view.published_results)
    memory = gpu_memory_column(view)
    axes = varying(view.cells) or ["precision"]
    rows: list[Row] = []
    for device in DEVICES:
        left = [result for result in published if result.get("device") == device]
        for cell in records(view.cells[view.cells["device"] == device]):
            rows.append(_of_cell(view, cell, name_by(cell, axes), memory))
            beside = [result for result in left if _is_of(result, cell)]
            rows += [_of_result(view, result, cell, result["hardware"] or "published") for result in beside]
            left = [result for result in left if not _is_of(result, cell)]
        rows += [_of_result(view, result, result, _full_name(result)) for result in left]
    return pd.DataFrame(rows, columns=ROW_COLUMNS)


def gpu_memory_column(view: StudyView) -> str:
    """What is compared as a GPU's memory: the peak that tensors needed, unless all that others say is the device's."""
    results = view.published_results
    given: Collection[str] = [] if results is None else results.columns[results.notna().any()].tolist()
    return "device_used_bytes" if "peak_allocated_bytes" not in given and "device_used_bytes" in given else PEAK


def _is_of(result: Row, cell: Row) -> bool:
    """Whether a result is of a cell: on every axis that it states."""
    return all(result[axis] == cell[axis] for axis in NAMED_AXES if result.get(axis) is not None)


def _full_name(result: Row) -> str:
    words = (result.get("label") or name_by(result, NAMED_AXES), result["hardware"])
    return ", ".join(word for word in words if word) or "published"


def _of_cell(view: StudyView, cell: Row, label: str, gpu_memory: str) -> Row:
    steps = view.run_steps(cell["batch_size"])
    scale = steps or 1
    return {
        "device": cell["device"],
        "label": label or DEVICE_WORDS[cell["device"]],
        "published": False,
        "status": cell["status"],
        "projected": steps is not None and (cell["timed_steps"] or 0) < steps,
        **{f"time{end}_s": _times(cell[f"step_time{end}_s"], scale) for end in ("", "_low", "_high")},
        "memory_bytes": cell["rss_growth_bytes" if cell["device"] == BASELINE else gpu_memory],
        "error": cell["max_relative_error"],
    }


def _of_result(view: StudyView, result: Row, cell: Row, label: str) -> Row:
    known = {name: value for name, value in result.items() if value is not None}
    memory = known.get("peak_allocated_bytes", known.get("device_used_bytes"))
    return {
        "device": known["device"],
        "label": label,
        "published": True,
        "status": "ok",
        "projected": False,
        "time_s": _published_time_s(view, known, known.get("batch_size", cell.get("batch_size"))),
        "memory_bytes": memory,
        "error": known.get("max_relative_error"),
    }


def _published_time_s(view: StudyView, known: Mapping[str, Any], batch_size: int | None) -> float | None:
    """The time of a run where the study has one, else of a step, by whatever the source gives."""
    steps = None if batch_size is None else view.run_steps(int(batch_size))
    if steps is not None and "run_time_s" in known:
        return float(known["run_time_s"])
    step_time_s = known.get("step_time_s")
    if step_time_s is None and batch_size is not None and "samples_per_s" in known:
        step_time_s = batch_size / known["samples_per_s"]
    return _times(step_time_s, steps or 1)


def _times(seconds: float | None, factor: int) -> float | None:
    return None if seconds is None else float(seconds) * factor

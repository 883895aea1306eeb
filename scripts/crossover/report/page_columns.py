"""What the page's table calls the columns of cells, and which of them its charts can show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crossover.figures.style import spaced
from crossover.statistics.summary import CELL_COLUMNS

MS, MB = ("ms", 1e3), ("MB", 1e-6)

TITLES: dict[str, tuple[str, str, float]] = {
    "batch_size": ("batch", "", 1),
    "step_time_s": ("time per step", *MS),
    "step_time_low_s": ("from", *MS),
    "step_time_high_s": ("to", *MS),
    "samples_per_s": ("samples per second", "", 1),
    "flops_per_step": ("floating-point operations", "GFLOP", 1e-9),
    "achieved_tflops": ("achieved", "TFLOP/s", 1),
    "peak_share": ("of the most reached", "%", 100),
    "peak_allocated_bytes": ("peak memory of tensors", *MB),
    "device_used_bytes": ("memory used on the device", *MB),
    "rss_growth_bytes": ("growth of the process", *MB),
    "energy_per_step_j": ("energy per step", "J", 1),
    "max_abs_error": ("largest error", "", 1),
    "max_relative_error": ("largest relative error", "", 1),
    "trials_not_ok": ("trials not ok", "", 1),
}
"""Title, unit and factor from the column's unit to that one; other columns have their name and no unit."""

FIRST = (
    "study",
    "size",
    "parameters",
    "device",
    "protocol",
    "variant",
    "batch_size",
    "precision",
    "execution",
    "step_time_s",
    "step_time_low_s",
    "step_time_high_s",
    "trials",
    "status",
    "flags",
)
"""The table begins with these; the rest follow in the order of cells.csv."""

ALWAYS = {"study", "size", "device", "step_time_s", "step_time_low_s", "step_time_high_s", "trials", "status"}
"""Columns that the table shows even where all cells agree in them."""

METRICS = {
    "step_time_s": "seconds",
    "samples_per_s": "rate",
    "achieved_tflops": "number",
    "peak_allocated_bytes": "bytes",
    "device_used_bytes": "bytes",
    "rss_growth_bytes": "bytes",
    "energy_per_step_j": "number",
    "max_abs_error": "number",
    "max_relative_error": "number",
}
"""What a chart can show over the size, and how its values are written."""

OF_TIME = {"step_time_s": 1, "samples_per_s": -1, "achieved_tflops": -1}
"""Metrics that have the interval of the time: 1 where they grow with it, -1 where they are one over it."""


def column_specs(names: Iterable[str]) -> list[dict[str, Any]]:
    """The table's columns in its order; each has `key`, `title`, `unit`, `factor`, `doc` and `always`."""
    given = list(names)
    ordered = [name for name in FIRST if name in given] + [name for name in given if name not in FIRST]
    specs = []
    for name in ordered:
        title, unit, factor = TITLES.get(name, (spaced(name), "", 1))
        doc = CELL_COLUMNS.get(name, "")
        specs.append(
            {"key": name, "title": title, "unit": unit, "factor": factor, "doc": doc, "always": name in ALWAYS}
        )
    return specs


def metric_specs(names: Iterable[str]) -> list[dict[str, Any]]:
    """What charts can show, of columns that there are: `key`, `title`, `unit`, `kind` and `of_time`."""
    given = set(names)
    return [
        {
            "key": name,
            "title": TITLES[name][0],
            "unit": TITLES[name][1] if kind == "number" else "",
            "kind": kind,
            "of_time": OF_TIME.get(name, 0),
        }
        for name, kind in METRICS.items()
        if name in given
    ]

"""The content of thresholds.json, for programs: crossovers, and the ranges in which the GPU or the CPU is faster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.intervals import Floats, has_intervals, sure_signs
from crossover.compare.pairings import REFERENCE
from crossover.compare.rules import Rule
from crossover.config.words import AXES, BASELINE
from crossover.tables.frames import headline_rows, records
from crossover.tables.labels import axis_label
from crossover.tables.reference_files import facts_of
from crossover.tables.run_tables import RunTables
from crossover.thresholds import POINT, VERSION
from crossover.topics.answers import read_answers
from crossover.topics.caveats import by_importance, flags_of
from crossover.topics.crossovers.sides import caveats_of_crossover, lost_caveat, sides_of, speedups_of
from crossover.topics.plane import InPlane, rule_text

GPU, CPU = "gpu", "cpu"


def thresholds_of(tables: RunTables, made_at: str) -> dict[str, Any]:
    """The content of thresholds.json: an entry for each series and accelerator, here or of a reference, and each plane.

    For a series without an accelerator, `device` and `gpu` are null.
    """
    crossovers = tables.crossovers
    elsewhere = crossovers[(crossovers["pair"] == REFERENCE) & (crossovers["cost"] == "time")]
    rows = records(pd.concat([headline_rows(crossovers), elsewhere]))
    series = [_threshold(row, tables) for row in rows]
    planes = [_of_plane(one, tables) for one in read_answers(tables.answers) if isinstance(one, InPlane)]
    return {"version": VERSION, "made_at": made_at, "thresholds": [*series, *planes]}


def _of_plane(plane: InPlane, tables: RunTables) -> dict[str, Any]:
    """The entry of sizes and batch sizes together: the regions in which a device is certified faster, and the rule."""
    cpu, gpu = (_host(tables, plane.machine, device) for device in (BASELINE, plane.axes["device"]))
    rule = plane.rule and {
        **plane.rule,
        "of": plane.rule_unit,
        "text": rule_text(Rule(**plane.rule["rule"]), plane.rule_unit, plane.batch_unit),
    }
    return {
        **{axis: plane.axes.get(axis) for axis in AXES},
        "gpu": gpu.get("device_name"),
        "cpu": cpu.get("device_name"),
        **{name: cpu.get(name) for name in ("physical_cores", "torch_version")},
        "gpu_measured_elsewhere": False,
        "gpu_driver_version": gpu.get("driver_version"),
        "unit": plane.unit,
        "arguments": [*(plane.arguments or POINT)],
        "trials": plane.trials,
        "single_trial": plane.status == "single_trial",
        "caveats": list(plane.caveats),
        **{"smallest": None, "largest": None, "lost": [], "ranges": []},
        "triangles": plane.triangles,
        "rule": rule,
    }


def _threshold(row: Mapping[str, Any], tables: RunTables) -> dict[str, Any]:
    speedups = speedups_of(row, tables)
    sizes = speedups.index.to_numpy(float)
    log_ratios, log_highs = np.log(speedups[["ratio", "ratio_high"]].to_numpy(float)).T
    half_widths = log_highs - log_ratios
    sides = sides_of(row, tables)
    lost = _lost(row, sides)
    here = _host(tables, row["baseline_machine"], row["baseline"])
    there = _host(tables, row["machine"], row["contender"])
    return {
        **{axis: row[axis] for axis in AXES if axis != "device"},
        "x_axis": row["x_axis"],
        "device": row["contender"],
        "gpu": row["contender_name"],
        "cpu": row["baseline_name"],
        **{name: here.get(name) for name in ("physical_cores", "torch_version")},
        "gpu_measured_elsewhere": row["pair"] == REFERENCE,
        **{f"gpu_{name}": there.get(name) for name in ("torch_version", "driver_version", "code_version")},
        "gpu_measured_on": there.get("measured_on") or str(there.get("started_at") or "")[:10] or None,
        "unit": axis_label(row),
        "status": row["status"],
        **{name: row[name] for name in ("crossover", "crossover_low", "crossover_high", "trials")},
        "single_trial": not has_intervals(half_widths) if len(sizes) else row["trials"] == 1,
        "caveats": by_importance([*caveats_of_crossover(row), *lost_caveat(sides), *flags_of(sides)]),
        "smallest": min(sizes, default=None),
        "largest": max(sizes, default=None),
        "lost": lost,
        "ranges": list(_ranges(row, sizes, log_ratios, half_widths, lost)) if len(sizes) else [],
        "speedups": [
            {"at": at, **{name: speedup[name] for name in ("ratio", "ratio_low", "ratio_high", "trials")}}
            for at, speedup in zip(sizes.tolist(), records(speedups), strict=True)
        ],
    }


def _lost(row: Mapping[str, Any], sides: pd.DataFrame) -> list[float]:
    """The sizes at which the GPU was tried but has no time, for example because it ran out of memory."""
    of_gpu = (sides["device"] == row["contender"]) & (sides["machine"] == row["machine"])
    return sorted(sides.loc[of_gpu.fillna(False) & sides["step_time_s"].isna(), "x"].dropna().unique().tolist())


def _ranges(
    row: Mapping[str, Any], sizes: Floats, log_ratios: Floats, half_widths: Floats, lost: Collection[float]
) -> Iterator[dict[str, Any]]:
    """The ranges of sizes at which a device is faster, up to the crossover's interval (or, without one, its bracket).

    A range ends before a measured size without a significant difference, and before a size in `lost`.
    """
    without_interval = row["crossover_low"] is None and row["crossover_high"] is None
    low, high = (row[f"{'bracket' if without_interval else 'crossover'}_{end}"] for end in ("low", "high"))
    smallest, largest = sizes[[0, -1]].tolist()
    first, last = (GPU if log_ratio > 0 else CPU for log_ratio in log_ratios[[0, -1]])
    below, above = (smallest, low, first), (high, largest, last)
    by_status = {
        "bracketed": [below, above],
        "reversed": [below, above],
        "edge_tie": [below, above],
        "below_range": [(smallest, largest, GPU)],
        "above_range": [(smallest, largest, CPU)],
    }
    signs = pd.Series(sure_signs(log_ratios, half_widths), sizes)
    for start, end, faster in by_status.get(str(row["status"]), []):
        if start is None or end is None:
            continue
        is_faster = (signs == (1 if faster == GPU else -1)).loc[start:end]
        points = {start: True, end: True} | is_faster.to_dict() | dict.fromkeys(lost, False)
        for is_in_range, group in groupby(sorted(points), points.get):
            range_points = list(group)
            if is_in_range and any(point in is_faster.index for point in range_points):
                yield {"from": range_points[0], "until": range_points[-1], "faster": faster}


def _host(tables: RunTables, machine: str, device: str) -> dict[str, Any]:
    rows = tables.measurements[tables.measurements["machine"] == machine]
    if len(rows):
        return next(iter(records(rows[rows["device"] == device].head(1))), {})
    references = facts_of(tables.reference_cells)
    return asdict(references[machine]) if machine in references else {}

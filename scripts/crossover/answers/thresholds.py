"""Crossovers for programs: from where on which device is faster, as thresholds.json has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.labels import axis_label
from crossover.tables.registry import LINE_AXES
from crossover.tables.run_tables import RunTables
from crossover.thresholds import VERSION

GPU, CPU = "gpu", "cpu"


def thresholds_of(tables: RunTables, made_at: str) -> dict[str, Any]:
    """The content of thresholds.json: one entry for each line and accelerator, its GPU here or measured elsewhere."""
    crossovers = tables.crossovers
    elsewhere = crossovers[(crossovers["pair"] == REFERENCE) & (crossovers["cost"] == "time")]
    rows = records(pd.concat([headline_rows(crossovers), elsewhere]))
    found = [_threshold(row, tables) for row in rows if row["contender"] is not None]
    return {"version": VERSION, "made_at": made_at, "thresholds": found}


def _threshold(row: Mapping[str, Any], tables: RunTables) -> dict[str, Any]:
    pairs = tables.ratios[tables.ratios["pair"] == row["pair"]]
    axes = [*LINE_AXES, "baseline", "baseline_machine", "contender"]
    own = rows_with(pairs, axes, row).dropna(subset=row["x_axis"]).sort_values(row["x_axis"])
    smallest, largest = own[row["x_axis"]].astype(float).iloc[[0, -1]] if len(own) else (None, None)
    first, last = (GPU if ratio > 1 else CPU for ratio in own["ratio"].iloc[[0, -1]]) if len(own) else (None, None)
    indicative = row["crossover_low"] is None and row["crossover_high"] is None
    low, high = (row[f"{'bracket' if indicative else 'crossover'}_{end}"] for end in ("low", "high"))
    known = {
        "bracketed": {"faster_below": CPU, "until": low, "faster_above": GPU, "from": high},
        "reversed": {"faster_below": GPU, "until": low, "faster_above": CPU, "from": high},
        "edge_tie": {
            **({} if low is None else {"faster_below": first, "until": low}),
            **({} if high is None else {"faster_above": last, "from": high}),
        },
        "below_range": {"faster_above": GPU, "from": smallest},
        "above_range": {"faster_below": CPU, "until": largest},
    }
    here, there = (
        _host(tables, row["baseline_machine"], row["baseline"]),
        _host(tables, row["machine"], row["contender"]),
    )
    return {
        **{axis: row[axis] for axis in LINE_AXES},
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
        "smallest": smallest,
        "largest": largest,
        **{"faster_below": None, "until": None, "faster_above": None, "from": None},
        **known.get(str(row["status"]), {}),
    }


def _host(tables: RunTables, machine: str, device: str) -> dict[str, Any]:
    """What is known of the machine beside a device, measured here or elsewhere."""
    own = tables.measurements[tables.measurements["machine"] == machine]
    found = own[own["device"] == device] if len(own) else tables.references[tables.references["machine"] == machine]
    return next(iter(records(found.head(1))), {})


def as_environment(thresholds: Sequence[Mapping[str, Any]]) -> str:
    """The same for a shell: a variable for each end of the sizes at which a GPU is faster, `_FROM` and `_UNTIL`."""
    lines = []
    for one in thresholds:
        words = [one["study"], one["machine"], one["variant"], one["protocol"], f"batch {one['batch_size']}"]
        words += [one["precision"], one["execution"], one["device"], "faster"]
        place = "measured elsewhere" if one["gpu_measured_elsewhere"] else "measured here"
        for side, end in (("faster_above", "from"), ("faster_below", "until")):
            if one[side] == GPU and one[end] is not None:
                name = re.sub(r"\W+", "_", " ".join([*words, end])).upper()
                value = int(one[end]) if float(one[end]).is_integer() else one[end]
                lines.append(f"# {one['unit']}; {one['gpu']}, {place}; {one['status']}; trials: {one['trials']}\n")
                lines.append(f"{name}={value}\n")
    return "".join(lines)

"""Over which models one side is ahead in every line of a run: the zones of its advice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.statistics.crossover_curve import ONE_TRIAL_LEAD
from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import headline_rows, records, rows_with
from crossover.tables.registry import LINE_AXES, table_of

SIDES = ["pair", "machine", "baseline", "baseline_machine", "contender"]
"""What one piece of advice compares."""


def zones_of(crossovers: pd.DataFrame, ratios: pd.DataFrame) -> pd.DataFrame:
    """One row for each accelerator, here or measured elsewhere, and the CPU that it is compared with.

    Models are counted in trainable parameters, the one scale that all studies share. A line speaks for the sizes that
    it was measured at: up to the lower end of its crossover's interval the CPU is ahead, from the upper end on the
    accelerator, and with one trial the sizes that bracket the crossover take the place of the interval.
    """
    elsewhere = crossovers[(crossovers["pair"] == REFERENCE) & (crossovers["cost"] == "time")]
    asked = pd.concat([headline_rows(crossovers), elsewhere]).dropna(subset="contender")
    rows = [_zones(lines, ratios) for _, lines in asked.groupby(SIDES, sort=False)]
    return table_of("zones", [row for row in rows if row])


def _zones(lines: pd.DataFrame, ratios: pd.DataFrame) -> dict[str, Any] | None:
    found = [(row, own) for row in records(lines) if len(own := _compared(row, ratios))]
    if not found:
        return None
    points = pd.concat([own for _, own in found])
    smallest, largest = float(points["parameters"].min()), float(points["parameters"].max())
    ends = [_ends(row, own) for row, own in found]
    lower, upper = min(low for low, _ in ends), max(high for _, high in ends)
    cpu_until = min(lower, largest) if lower >= smallest else None
    gpu_from = max(upper, smallest) if upper <= largest else None
    if cpu_until is not None and gpu_from is not None and cpu_until > gpu_from:
        # Of lines that share no size, each speaks up to its own end.
        cpu_until, gpu_from = gpu_from, cpu_until
    below = points[points["parameters"] <= cpu_until] if cpu_until is not None else points.head(0)
    above = points[points["parameters"] >= gpu_from] if gpu_from is not None else points.head(0)
    between = points.drop([*below.index, *above.index])
    first = found[0][0]
    return {
        **{name: first[name] for name in SIDES},
        "baseline_name": first["baseline_name"],
        "contender_name": first["contender_name"],
        "studies": list(dict.fromkeys(row["study"] for row, _ in found)),
        "precisions": list(dict.fromkeys(row["precision"] for row, _ in found)),
        "batch_sizes": sorted({int(row["batch_size"]) for row, _ in found}),
        "lines": len(found),
        "trials": min(row["trials"] for row, _ in found),
        "smallest": smallest,
        "cpu_until": cpu_until,
        "gpu_from": gpu_from,
        "largest": largest,
        **_span("cpu_ratio", 1 / below["ratio"]),
        **_span("between_ratio", between["ratio"]),
        **_span("gpu_ratio", above["ratio"]),
    }


def _compared(row: Mapping[str, Any], ratios: pd.DataFrame) -> pd.DataFrame:
    """The pairs of cells of a line, by parameters."""
    own = rows_with(ratios[ratios["pair"] == row["pair"]], [*LINE_AXES, *SIDES], row)
    return own.dropna(subset=["parameters", "ratio"]).sort_values("parameters")


def _ends(row: Mapping[str, Any], own: pd.DataFrame) -> tuple[float, float]:
    """Up to where a line says CPU, and from where on GPU, in parameters; it says nothing beyond its own sizes."""
    before = math.nextafter(own["parameters"].iloc[0], 0)
    beyond = math.nextafter(own["parameters"].iloc[-1], math.inf)
    if row["status"] == "below_range":
        return before, 0
    if row["status"] == "above_range":
        return math.inf, beyond
    if row["status"] in ("multiple", "undecided") and row["pair"] != REFERENCE:
        return _sure_ends(own, before, beyond)
    if row["status"] not in ("bracketed", "edge_tie"):
        return before, beyond
    low, high = (row[f"crossover_parameters_{end}"] for end in ("low", "high"))
    if low is None and high is None:
        parameters = dict(zip(own[row["x_axis"]], own["parameters"], strict=True))
        low, high = (parameters.get(row[f"bracket_{end}"]) for end in ("low", "high"))
    # Of a line that has a tie at an end, either side may be the one that is ahead.
    cpu_first, gpu_last = own["ratio"].iloc[0] < 1, own["ratio"].iloc[-1] > 1
    return float(low if low and cpu_first else before), float(high if high and gpu_last else beyond)


def _sure_ends(own: pd.DataFrame, before: float, beyond: float) -> tuple[float, float]:
    """The same of a line without a single crossover: up to where the CPU is ahead at every size, from where on the GPU.

    Ahead is by the interval over trials; with one trial, by a ratio that counts.
    """
    one_trial = own["ratio_low"].isna()
    behind = own["ratio_high"].where(~one_trial, own["ratio"] * ONE_TRIAL_LEAD) < 1
    ahead = own["ratio_low"].where(~one_trial, own["ratio"] / ONE_TRIAL_LEAD) > 1
    head, tail = int(behind.cumprod().sum()), int(ahead[::-1].cumprod().sum())
    return (own["parameters"].iloc[head - 1] if head else before, own["parameters"].iloc[-tail] if tail else beyond)


def _span(name: str, values: pd.Series) -> dict[str, float]:
    known = values.astype(float)
    return {f"{name}_low": known.min(), f"{name}_high": known.max()} if len(known) else {}

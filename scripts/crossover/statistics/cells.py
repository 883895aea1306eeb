"""From trials to cells: one row a cell, with intervals over its trials, memory, energy, price and utilisation."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.config.words import BASELINE, is_cpu
from crossover.statistics.intervals import ENERGY_RESOLUTION, Floats, Interval, share_over_trials, time_over_trials
from crossover.tables.registry import CELL_AXES, MEMORY_PARTS, table_of

TRIALS_DIFFER = 1.25
"""Slowest trial over fastest: above it, one more trial may lie further off still."""

PEAK_WORKLOAD = "matmul"
"""The workload whose rate stands for what a device can do."""

TERA, MILLION, SECONDS_PER_HOUR = 1e12, 10**6, 3600

AS_THEY_ARE = ("status", "reason", "flags", "size_name", "size_label", "device_name", "hostname", "threads")
AS_NUMBERS = (
    *("step_time_s", "parameters", "batch_size", "flops_per_step", "host_bound_share", "energy_per_step_j"),
    "samples_per_step",
    *("peak_allocated_bytes", "device_used_bytes", "peak_rss_bytes", "base_rss_bytes", "memory_bytes"),
    *("device_memory_bytes", "max_abs_error", "max_relative_error", "timed_steps", *MEMORY_PARTS),
)
"""The columns of a trial that a cell is made of."""

Columns = Mapping[str, NDArray[Any]]
Places = NDArray[np.intp]


def summarise(
    measurements: pd.DataFrame,
    sizes: Mapping[str, Collection[int]] | None = None,
    prices: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """One row a cell: status, time with its interval, memory, energy, price, trials, flags and the device that ran.

    `sizes` holds those of each study's first grid, where it is known; refinement added the others. `prices` holds the
    price of an hour on the machine of each device. A cell is `ok` if all its trials are; otherwise it takes the status
    of the first trial that is not, and its time comes from the trials that are.
    """
    # Ten thousand cells are cut out of plain arrays in the time that pandas takes for a few hundred.
    columns = {name: measurements[name].to_numpy(object) for name in (*CELL_AXES, *AS_THEY_ARE)}
    numbers = {name: _numbers(measurements[name]) for name in AS_NUMBERS}
    cells = [_summarise_cell(columns, numbers, rows, prices or {}) for rows in rows_of_cells(measurements)]
    first_grid = {study: set(own) for study, own in (sizes or {}).items()}
    for cell in cells:
        cell["refined"] = cell["study"] in first_grid and cell["size"] not in first_grid[cell["study"]]
    return _with_peak_share(table_of("cells", cells))


def rows_of_cells(measurements: pd.DataFrame) -> list[Places]:
    """The places of each cell's rows, the cells in the order in which they come."""
    cells = measurements.groupby(CELL_AXES, sort=False).ngroup().to_numpy()
    order = np.argsort(cells, kind="stable")
    order = order[cells[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1) if len(order) else []


def _summarise_cell(columns: Columns, numbers: Columns, rows: Places, prices: Mapping[str, float]) -> dict[str, Any]:
    first = rows[0]
    device = str(columns["device"][first])
    is_ok = columns["status"][rows] == "ok"
    ok, failed = rows[is_ok], rows[~is_ok]
    own = {name: values[ok] for name, values in numbers.items()}
    times_s = own["step_time_s"].tolist()
    time = time_over_trials(times_s) if times_s else Interval(math.nan)
    differing = {"trials_differ"} if times_s and max(times_s) > TRIALS_DIFFER * min(times_s) else set()
    # Of the whole machine that holds the device, whatever part of it a step uses.
    price = prices.get(BASELINE if is_cpu(device) else device, math.nan)
    shares = _known(own["host_bound_share"])
    # A counter that stood still measured nothing.
    joules = _known(own["energy_per_step_j"][own["energy_per_step_j"] > 0])
    flops = _median(numbers["flops_per_step"][rows])
    return {
        **{axis: columns[axis][first] for axis in CELL_AXES},
        "size_name": columns["size_name"][first],
        "size_label": columns["size_label"][first],
        "parameters": _most(numbers["parameters"][rows]),
        "status": columns["status"][failed[0]] if len(failed) else "ok",
        "reason": columns["reason"][failed[0]] if len(failed) else None,
        **_named("step_time{}_s", time),
        **_named("samples_per_s{}", _rate(_mean_samples(own, numbers["batch_size"][first]), time)),
        "flops_per_step": flops,
        **_named("achieved_tflops{}", _rate(flops, time, TERA)),
        **_named("host_bound_share{}", share_over_trials(shares) if shares else None),
        **_named("energy_per_step{}_j", time_over_trials(joules, resolution=ENERGY_RESOLUTION) if joules else None),
        **_named("price_per_million_steps{}", _scaled(time, price / SECONDS_PER_HOUR * MILLION)),
        "peak_allocated_bytes": _median(own["peak_allocated_bytes"]),
        "device_used_bytes": _median(own["device_used_bytes"]),
        "rss_growth_bytes": _median(own["peak_rss_bytes"] - own["base_rss_bytes"]),
        **_peak(own, device),
        "capacity_bytes": _most(numbers["memory_bytes" if is_cpu(device) else "device_memory_bytes"][rows]),
        "max_abs_error": _median(own["max_abs_error"]),
        "max_relative_error": _median(own["max_relative_error"]),
        "timed_steps": -_most(-own["timed_steps"]),
        "trials": len(ok),
        "trials_not_ok": len(failed),
        "flags": sorted({flag for flags in columns["flags"][ok] for flag in flags} | differing),
        "device_name": columns["device_name"][first],
        "hostname": columns["hostname"][first],
        "threads": columns["threads"][first],
    }


def _named(name: str, found: Interval | None) -> dict[str, float | None]:
    """The columns of an interval; `name` has a place for `_low` and `_high`."""
    if found is None:
        return {}
    return {name.format(end): value for end, value in zip(("", "_low", "_high"), vars(found).values(), strict=True)}


def _rate(amount: float, time: Interval, unit: float = 1.0) -> Interval:
    """An amount over a time, in units of so many; the upper end of the time gives the lower end of the rate."""
    low, high = (None if end is None else amount / end / unit for end in (time.high, time.low))
    return Interval(amount / time.mean / unit, low, high)


def _mean_samples(own: Columns, batch_size: float) -> float:
    """Samples of a step, the mean over trials; the batch size where no trial says."""
    known = _known(own["samples_per_step"])
    return math.fsum(known) / len(known) if known else batch_size


def _scaled(time: Interval, factor: float) -> Interval:
    """A time in another unit."""
    low, high = (None if end is None else end * factor for end in (time.low, time.high))
    return Interval(time.mean * factor, low, high)


def _peak(own: Columns, device: str) -> dict[str, float]:
    """The peak of the trial that has the lower median peak, and its parts, so that all are of one step.

    The peak is what tensors needed; on the CPU, where no allocator counts, the sum of the parts, or without them the
    growth of the process.
    """
    peaks = own["peak_allocated_bytes"]
    if is_cpu(device):
        parts = np.sum([own[part] for part in MEMORY_PARTS], axis=0)
        peaks = np.where(np.isnan(parts), own["peak_rss_bytes"] - own["base_rss_bytes"], parts)
    order = np.argsort(peaks, kind="stable")[: len(peaks) - int(np.isnan(peaks).sum())]
    if not len(order):
        return {}
    middle = order[(len(order) - 1) // 2]
    return {"peak_bytes": float(peaks[middle])} | {part: float(own[part][middle]) for part in MEMORY_PARTS}


def _with_peak_share(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with their share of the largest rate that a matrix product reached on the device in the precision.

    That is a measured peak, not the data sheet's: a cell may exceed it.
    """
    rates = cells["achieved_tflops"]
    of_products = rates.where(cells["workload"] == PEAK_WORKLOAD)
    peaks = of_products.groupby([cells[axis] for axis in ("machine", "device", "precision")]).transform("max")
    return cells.assign(peak_share=rates / peaks)


def _numbers(values: pd.Series) -> Floats:
    return pd.to_numeric(values).to_numpy(float, na_value=np.nan)


def _known(values: Floats) -> list[float]:
    return [float(value) for value in values[~np.isnan(values)]]


def _most(values: Floats) -> float:
    """The largest number; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else math.nan


def _median(values: Floats) -> float:
    """The lower median, a value that was measured; NaN where none was."""
    known = np.sort(values[~np.isnan(values)])
    return float(known[(len(known) - 1) // 2]) if len(known) else math.nan

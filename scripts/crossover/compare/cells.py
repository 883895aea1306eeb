"""Summarise trials as cells: times with intervals, memory, energy, price and utilisation."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.compare.flags import cell_flags
from crossover.compare.intervals import ENERGY_RESOLUTION, Floats, Interval, SampleMean, columns_of, share_over_trials
from crossover.config.words import BASELINE, HERE, is_cpu, ranks_of_side, unit_of_side
from crossover.drift import drift_of
from crossover.tables.registry import CELL_AXES, MEMORY_PARTS
from crossover.tables.run_tables import table_of

PEAK_WORKLOAD = "matmul"
"""The workload whose highest rate counts as the measured peak of a device."""

TERA, MILLION, SECONDS_PER_HOUR = 1e12, 10**6, 3600

OF_FIRST_TRIAL = ("size_name", "size_label", "batch_name", "sample_name", "device_name", "hostname", "threads")
MEDIANS = ("peak_allocated_bytes", "device_used_bytes", "max_abs_error", "max_relative_error")
"""Columns summarised by the lower median over ok trials."""
NUMBERS = (
    *("step_time_s", "parameters", "batch_size", "samples_per_step", "flops_per_step", "host_bound_share"),
    *("energy_per_step_j", "peak_rss_bytes", "base_rss_bytes", "memory_bytes", "device_memory_bytes", "timed_steps"),
    *(*MEDIANS, *MEMORY_PARTS),
)

Columns = Mapping[str, NDArray[Any]]
Positions = NDArray[np.intp]

CostMeans = Mapping[str, SampleMean]
"""ln of each cost of a step: of the seconds (`time`), the joules (`energy`) and the money per million steps (`money`).
Costs that are unknown are absent.
"""
MeansOfCells = Mapping[tuple[Any, ...], CostMeans]
"""The mean costs of each cell over its ok trials, by `cell_key`."""


def summarise(
    measurements: pd.DataFrame,
    means: MeansOfCells | None = None,
    first_points: Mapping[str, tuple[str, Collection[int]]] | None = None,
    origin: str = "study",
) -> pd.DataFrame:
    """Table `cells`: one row per cell, summarised from its trials; `means` has its costs (by default, `means_of`).

    A cell is `ok` if all its trials are. Otherwise it has the status of the first trial that is not ok, and its time
    comes from the ok trials.

    `first_points` maps a study to the axis along which refinement adds points and to the points of the first grid.
    Cells at other points are marked as refined. A study without an entry has no refined cells. `origin` is one of
    ORIGINS in `crossover.tables.registry`.
    """
    # Arrays are much faster than a pandas table per cell.
    columns = {
        name: measurements[name].to_numpy(object)
        for name in (*CELL_AXES, *OF_FIRST_TRIAL, "status", "reason", "flag_names", "samples_s")
    }
    numbers = {name: numbers_of(measurements[name]) for name in NUMBERS}
    means = means_of(measurements) if means is None else means
    cells = [_summarise_cell(columns, numbers, rows, means) for rows in rows_of_cells(measurements)]
    grid = {study: (axis, set(points)) for study, (axis, points) in (first_points or {}).items()}
    for cell in cells:
        axis, points = grid.get(cell["study"], ("size", {cell["size"]}))
        cell["refined"] = cell[axis] not in points
    return _with_peak_share(table_of("cells", cells).assign(origin=pd.array([origin] * len(cells), "string")))


def cell_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of CELL_AXES."""
    return tuple(row[axis] for axis in CELL_AXES)


def means_of(measurements: pd.DataFrame, prices: Mapping[str, float] | None = None) -> dict[tuple[Any, ...], CostMeans]:
    """The mean costs of each cell over its ok trials, by `cell_key`; `prices` is as for `hourly_price`."""
    axes = list(zip(*(measurements[axis].tolist() for axis in CELL_AXES), strict=True))
    is_ok = (measurements["status"] == "ok").to_numpy(bool)
    times_s, joules = (numbers_of(measurements[name]) for name in ("step_time_s", "energy_per_step_j"))
    means = {}
    for rows in rows_of_cells(measurements):
        cell, ok = dict(zip(CELL_AXES, axes[rows[0]], strict=True)), rows[is_ok[rows]]
        price = hourly_price(prices or {}, cell["machine"], cell["device"])
        means[axes[rows[0]]] = _cost_means(times_s[ok].tolist(), joules[ok], price)
    return means


def _cost_means(times_s: Sequence[float], joules: Floats, price: float) -> CostMeans:
    """The mean costs from the ok trials of a cell; `joules` has shape (trials,) and may have NaN."""
    means = {"time": SampleMean.of_times(times_s)} if times_s else {}
    if times_s and not math.isnan(price):
        per_second = math.log(price / SECONDS_PER_HOUR * MILLION)
        means["money"] = replace(means["time"], mean=means["time"].mean + per_second)
    # An energy of 0 means that the counter did not change.
    if known := _present(joules[joules > 0]):
        means["energy"] = SampleMean.of_times(known, ENERGY_RESOLUTION)
    return means


def rows_of_cells(measurements: pd.DataFrame) -> list[Positions]:
    """The positions of each cell's rows; the cells are in the order of their first rows."""
    cells = measurements.groupby(CELL_AXES, sort=False).ngroup().to_numpy()
    order = np.argsort(cells, kind="stable")
    order = order[cells[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1) if len(order) else []


def _summarise_cell(columns: Columns, numbers: Columns, rows: Positions, means: MeansOfCells) -> dict[str, Any]:
    first = rows[0]
    device = str(columns["device"][first])
    is_ok = columns["status"][rows] == "ok"
    ok, failed = rows[is_ok], rows[~is_ok]
    numbers_of_ok = {name: values[ok] for name, values in numbers.items()}
    times_s = numbers_of_ok["step_time_s"].tolist()
    drifts = [drift_of(samples) for samples in columns["samples_s"][ok] if np.size(samples) > 1]
    shares = _present(numbers_of_ok["host_bound_share"])
    costs = {
        cost: mean.exp_interval() for cost, mean in means[tuple(columns[axis][first] for axis in CELL_AXES)].items()
    }
    time = costs.get("time", Interval(math.nan))
    counts = _present(numbers_of_ok["samples_per_step"])
    samples = math.fsum(counts) / len(counts) if counts else numbers["batch_size"][first]
    flops = _median(numbers["flops_per_step"][rows])
    return {
        **{name: columns[name][first] for name in (*CELL_AXES, *OF_FIRST_TRIAL)},
        "parameters": np.fmax.reduce(numbers["parameters"][rows]),
        "status": columns["status"][failed[0]] if len(failed) else "ok",
        "reason": columns["reason"][failed[0]] if len(failed) else None,
        **columns_of(time, "step_time{}_s"),
        **columns_of(_scaled(time.inverted(), samples), "samples_per_s{}"),
        "flops_per_step": flops,
        **columns_of(_scaled(time.inverted(), flops / TERA), "achieved_tflops{}"),
        **(columns_of(share_over_trials(shares), "host_bound_share{}") if shares else {}),
        **(columns_of(costs["energy"], "energy_per_step{}_j") if "energy" in costs else {}),
        **(columns_of(costs["money"], "price_per_million_steps{}") if "money" in costs else {}),
        **{name: _median(numbers_of_ok[name]) for name in MEDIANS},
        "rss_growth_bytes": _median(numbers_of_ok["peak_rss_bytes"] - numbers_of_ok["base_rss_bytes"]),
        **_peak(numbers_of_ok, device),
        "capacity_bytes": np.fmax.reduce(numbers["memory_bytes" if is_cpu(device) else "device_memory_bytes"][rows]),
        "timed_steps": np.fmin.reduce(numbers_of_ok["timed_steps"], initial=np.nan),
        "trials": len(ok),
        "trials_not_ok": len(failed),
        "flag_names": cell_flags(times_s, columns["flag_names"][ok].tolist(), drifts),
    }


def hourly_price(prices: Mapping[str, float | None], machine: str, device: str) -> float:
    """Price per hour of the whole machine, even if a step uses only a part of it; NaN if none is given.

    The price of a machine with a name is looked up by this name, then by the device. For a machine without a name, it
    is looked up by the device, then as `here`. N GPUs cost N times the price of a machine with one.
    """
    unit = BASELINE if is_cpu(device) else unit_of_side(device)
    number = 1 if is_cpu(device) else ranks_of_side(device)
    keys = [(unit, number), (HERE, 1)] if machine == HERE else [(machine, 1), (unit, number)]
    return next((number * price for key, number in keys if (price := prices.get(key)) is not None), math.nan)


def _scaled(interval: Interval, factor: float) -> Interval:
    low, high = (None if end is None else end * factor for end in (interval.low, interval.high))
    return Interval(interval.mean * factor, low, high)


def _peak(numbers: Columns, device: str) -> dict[str, float]:
    """The peak memory and its parts, all from the trial whose peak is the lower median.

    The CPU's allocator records no peak. Its peak is the sum of the parts or, without parts, the growth of the process.
    """
    peaks = numbers["peak_allocated_bytes"]
    if is_cpu(device):
        parts = np.sum([numbers[part] for part in MEMORY_PARTS], axis=0)
        peaks = np.where(np.isnan(parts), numbers["peak_rss_bytes"] - numbers["base_rss_bytes"], parts)
    order = np.argsort(peaks, kind="stable")[: len(peaks) - int(np.isnan(peaks).sum())]
    if not len(order):
        return {}
    middle = order[(len(order) - 1) // 2]
    return {"peak_bytes": float(peaks[middle])} | {part: float(numbers[part][middle]) for part in MEMORY_PARTS}


def _with_peak_share(cells: pd.DataFrame) -> pd.DataFrame:
    """Add rates as shares of the highest rate of a matrix product on the same device in the same precision.

    Other workloads can have shares above 1.
    """
    rates = cells["achieved_tflops"]
    of_products = rates.where(cells["workload"] == PEAK_WORKLOAD)
    peaks = of_products.groupby([cells[axis] for axis in ("machine", "device", "precision")]).transform("max")
    return cells.assign(peak_share=rates / peaks)


def numbers_of(values: pd.Series) -> Floats:
    return pd.to_numeric(values).to_numpy(float, na_value=np.nan)


def _present(values: Floats) -> list[float]:
    present: list[float] = values[~np.isnan(values)].tolist()
    return present


def _median(values: Floats) -> float:
    """The lower median, which is a measured value."""
    measured = sorted(_present(values))
    return measured[(len(measured) - 1) // 2] if measured else math.nan

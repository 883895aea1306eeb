"""Table `ratios`: speed-ups between devices, settings, protocols and machines, and the payback of start-up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossover.config.studies import Cell
from crossover.config.words import BASELINE, BASELINE_SETTINGS, FROM_HOST, PROTOCOLS, is_cpu, threads_of_side
from crossover.statistics.cells import numbers_of, rows_of_cells
from crossover.statistics.intervals import Interval, SampleMean, columns_of, ratio_of, sure_signs
from crossover.statistics.pairings import compare_across
from crossover.statistics.payback import Jobs, payback, startups_of
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of


class Pair(NamedTuple):
    """Two cells that are compared, with the names of both sides."""

    pair: str
    contender: Cell
    baseline: Cell
    contender_name: str
    baseline_name: str


class Times(NamedTuple):
    """The times of a cell's ok trials."""

    steps: SampleMean
    jobs: Jobs
    """The trials with a known start-up."""


Cells = Mapping[Cell, Times | None]
"""The times of each cell; None for a cell without times."""


def ratios_of(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row per pair of cells that both have times."""
    cells, parameters, threads = _cells(measurements)
    rows = [
        _row(pair, contender, baseline)
        | {"parameters": parameters[pair.contender], "baseline_threads": threads[pair.baseline]}
        for pairs in (_devices, _settings, _protocols, _machines)
        for pair in pairs(cells)
        if (contender := cells[pair.contender]) and (baseline := cells.get(pair.baseline))
    ]
    return table_of("ratios", rows)


def _cells(measurements: pd.DataFrame) -> tuple[Cells, Mapping[Cell, float], Mapping[Cell, int | None]]:
    axes = {axis: measurements[axis].to_numpy(object) for axis in CELL_AXES}
    is_ok = (measurements["status"] == "ok").to_numpy(bool)
    times_s, startups_s = numbers_of(measurements["step_time_s"]), startups_of(measurements)
    counts, threads = (numbers_of(measurements[name]) for name in ("parameters", "threads"))
    cells, parameters, threads_of = {}, {}, {}
    for rows in rows_of_cells(measurements):
        key = Cell(**{axis: values[rows[0]] for axis, values in axes.items()})
        ok = rows[is_ok[rows] & ~np.isnan(times_s[rows])]
        started = ok[~np.isnan(startups_s[ok])]
        jobs = Jobs(startups_s[started].tolist(), times_s[started].tolist())
        cells[key] = Times(SampleMean.of_times(times_s[ok].tolist()), jobs) if len(ok) else None
        parameters[key] = np.fmax.reduce(counts[rows])
        count = threads[rows[0]]
        threads_of[key] = int(count) if is_cpu(key.device) and not np.isnan(count) else None
    return cells, parameters, threads_of


def _row(pair: Pair, contender: Times, baseline: Times) -> dict[str, Any]:
    ratio = ratio_of(contender.steps, baseline.steps)
    row = {
        **pair.contender.values,
        "pair": pair.pair,
        "baseline": pair.baseline_name,
        "baseline_machine": pair.baseline.machine,
        "contender": pair.contender_name,
        **columns_of(ratio, "ratio{}"),
        "trials": 1 + min(contender.steps.freedom, baseline.steps.freedom),
        "baseline_s": math.exp(baseline.steps.mean),
        "contender_s": math.exp(contender.steps.mean),
    }
    if pair.pair != "machine":
        row |= {"startup_s": contender.jobs.startup_s, "baseline_startup_s": baseline.jobs.startup_s}
        row |= columns_of(payback(contender.jobs, baseline.jobs) or Interval(math.nan), "payback_steps{}")
    return row


def sign_of(row: Mapping[str, Any]) -> float:
    """1 if the ratio of a row is significantly above 1, -1 if it is significantly below 1, otherwise 0."""
    log_ratio = np.log([row["ratio"]])
    log_high = np.log([np.nan if row["ratio_high"] is None else row["ratio_high"]])
    return float(sure_signs(log_ratio, log_high - log_ratio).item())


def _devices(cells: Cells) -> Iterator[Pair]:
    """Each accelerator against the CPU sides of its machine, and against CPUs of other machines (`compare_across`)."""
    sides = dict.fromkeys(key.device for key in cells if is_cpu(key.device))
    devices: dict[Cell, dict[str, set[str]]] = {}
    for key in _on_all_cores(cells):
        devices.setdefault(_shared(key), {}).setdefault(key.machine, set()).add(key.device)
    for key in (key for key in cells if not is_cpu(key.device)):
        for side in sides:
            yield Pair("device", key, replace(key, device=side), key.device, side)
        devices_of = devices[_shared(key)]
        for machine in devices_of:
            if machine != key.machine and compare_across(devices_of[key.machine], devices_of[machine]):
                yield Pair("device", key, replace(key, machine=machine, device=BASELINE), key.device, BASELINE)


def _settings(cells: Cells) -> Iterator[Pair]:
    """Each combination of precision and execution against the baseline of the study, on the same device."""
    studies: dict[str, list[Cell]] = {}
    for key in _on_all_cores(cells):
        studies.setdefault(key.study, []).append(key)
    for keys in studies.values():
        settings = baseline_settings(keys)
        varied = [axis for axis in settings if len({getattr(key, axis) for key in keys}) > 1]
        for key in keys if varied else ():
            baseline = replace(key, **settings)
            if key != baseline:
                names = [", ".join(getattr(side, axis) for axis in varied) for side in (key, baseline)]
                yield Pair("settings", key, baseline, *names)


def baseline_settings(cells: Collection[Any]) -> dict[str, Any]:
    """The baseline settings of a study: `fp32` and `eager`, or a setting's only value; empty without a baseline."""
    baseline: dict[str, Any] = {}
    for axis, usual in BASELINE_SETTINGS.items():
        values = {getattr(key, axis) for key in cells}
        if len(values) > 1 and usual not in values:
            return {}
        baseline[axis] = usual if len(values) > 1 else values.pop()
    return baseline


def _protocols(cells: Cells) -> Iterator[Pair]:
    resident = PROTOCOLS[0]
    for key in _on_all_cores(cells):
        for protocol in FROM_HOST if key.protocol == resident else ():
            yield Pair("protocol", key, replace(key, protocol=protocol), resident, protocol)


def _machines(cells: Cells) -> Iterator[Pair]:
    """Each device of a machine against the same device of the first machine in the series that has it."""
    first: dict[Cell, str] = {}
    for key in _on_all_cores(cells):
        line = replace(_shared(key), device=key.device)
        machine = first.setdefault(line, key.machine)
        if machine != key.machine:
            yield Pair("machine", key, replace(key, machine=machine), key.machine, machine)


def _on_all_cores(cells: Cells) -> Iterator[Cell]:
    return (key for key in cells if threads_of_side(key.device) is None)


def _shared(key: Cell) -> Cell:
    """A cell without its size, machine and device, for grouping a series over machines and devices."""
    return replace(key, size=0, machine="", device="")

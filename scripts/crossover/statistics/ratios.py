"""How many times as fast one cell is as another: devices, settings, protocols and machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossover.config.words import BASELINE, PLAIN_SIDES, is_cpu, threads_of_side
from crossover.statistics.cells import rows_of_cells
from crossover.statistics.intervals import ratio_over_trials, time_over_trials
from crossover.statistics.pairings import cpu_against_accelerators, plain_sides
from crossover.tables.registry import CELL_AXES, LINE_AXES, table_of


class Key(NamedTuple):
    """A cell's values on CELL_AXES."""

    study: str
    workload: str
    variant: str
    protocol: str
    batch_size: int
    precision: str
    execution: str
    size: int
    machine: str
    device: str


class Pair(NamedTuple):
    """Two cells to compare, and what each side is called."""

    pair: str
    contender: Key
    baseline: Key
    contender_name: str
    baseline_name: str


Cells = Mapping[Key, Sequence[float]]
"""The times of the ok trials of each cell, in seconds."""


def ratios_of(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row a pair of cells that both have times, as `crossover.tables.registry.RATIOS` says."""
    cells, parameters = _cells(measurements)
    rows = [
        _row(one, cells, parameters)
        for pairs in (_devices, _settings, _protocols, _machines)
        for one in pairs(cells)
        if cells.get(one.contender) and cells.get(one.baseline)
    ]
    return table_of("ratios", rows)


def _cells(measurements: pd.DataFrame) -> tuple[Cells, Mapping[Key, float]]:
    """The times of every cell (none of a cell without an ok trial), and its parameters."""
    axes = [measurements[axis].to_numpy(object) for axis in CELL_AXES]
    is_ok = (measurements["status"] == "ok").to_numpy(bool)
    times_s = pd.to_numeric(measurements["step_time_s"]).to_numpy(float, na_value=np.nan)
    counts = pd.to_numeric(measurements["parameters"]).to_numpy(float, na_value=np.nan)
    cells, parameters = {}, {}
    for rows in rows_of_cells(measurements):
        key = Key(*(values[rows[0]] for values in axes))
        cells[key] = times_s[rows[is_ok[rows] & ~np.isnan(times_s[rows])]].tolist()
        parameters[key] = counts[rows].max()
    return cells, parameters


def _row(one: Pair, cells: Cells, parameters: Mapping[Key, float]) -> dict[str, Any]:
    contender_s, baseline_s = cells[one.contender], cells[one.baseline]
    found = ratio_over_trials(contender_s, baseline_s)
    return {
        **one.contender._asdict(),
        "parameters": parameters[one.contender],
        "pair": one.pair,
        "baseline": one.baseline_name,
        "baseline_machine": one.baseline.machine,
        "contender": one.contender_name,
        "ratio": found.mean,
        "ratio_low": found.low,
        "ratio_high": found.high,
        "trials": min(len(contender_s), len(baseline_s)),
        "baseline_s": time_over_trials(baseline_s).mean,
        "contender_s": time_over_trials(contender_s).mean,
    }


def _devices(cells: Cells) -> Iterator[Pair]:
    """Each accelerator against every CPU side of its machine, then against other machines' CPUs where one lacks any."""
    sides = dict.fromkeys(key.device for key in cells if is_cpu(key.device))
    for key in cells:
        for side in () if is_cpu(key.device) else sides:
            yield Pair("device", key, key._replace(device=side), key.device, side)
    for machine, accelerator, other in cpu_against_accelerators(cells)

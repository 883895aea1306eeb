"""Table `ratios`: speed-ups between devices, settings, protocols and machines, and the payback of start-up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossover.compare.cells import MeansOfCells, cell_key, numbers_of, rows_of_cells
from crossover.compare.intervals import Interval, SampleMean, columns_of, ratio_of, sure_signs
from crossover.compare.pairings import Pairing
from crossover.compare.payback import RunCosts, payback, startups_of
from crossover.config.studies import Cell
from crossover.config.words import is_cpu
from crossover.tables.registry import CELL_AXES
from crossover.tables.run_tables import table_of


class Times(NamedTuple):
    """The times of a cell's ok trials, of which there is at least one."""

    steps: SampleMean
    """ln(seconds per step)."""
    trials: int
    jobs: RunCosts
    """The trials with a known start-up."""
    parameters: float
    threads: int | None
    """The number of cores of a CPU; None if unknown, and for accelerators."""


def ratios_of(
    measurements: pd.DataFrame,
    means: MeansOfCells,
    pairs: Iterable[Pairing],
    together: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """One row per pair of cells of the pairings that both have times in `measurements`, whose means are in `means`.

    A payback is given where a step is significantly faster, corrected for the number of comparisons of the study.
    """
    cells = _cells(measurements, means)
    rows: dict[tuple[str, Cell, Cell], dict[str, Any]] = {}
    for pairing in pairs:
        compared = [sides for sides in pairing.cells() if {*sides[1:]} <= cells.keys()]
        signs = pairing.signs((together or {}).get(pairing.study, 1)) if compared else {}
        for point, contender, baseline in compared:
            times, baseline_times = cells[contender], cells[baseline]
            rows[pairing.pair, contender, baseline] = {
                **contender.values,
                "parameters": times.parameters,
                "pair": pairing.pair,
                "baseline": baseline.device if pairing.pair == "device" else pairing.baseline,
                "baseline_machine": baseline.machine,
                "baseline_threads": baseline_times.threads,
                "contender": pairing.contender,
                **columns_of(ratio_of(times.steps, baseline_times.steps), "ratio{}"),
                "trials": min(times.trials, baseline_times.trials),
                "baseline_s": math.exp(baseline_times.steps.mean),
                "contender_s": math.exp(times.steps.mean),
                **({} if pairing.pair == "machine" else _startups(times.jobs, baseline_times.jobs, signs[point])),
            }
    return table_of("ratios", list(rows.values()))


def _cells(measurements: pd.DataFrame, means: MeansOfCells) -> dict[Cell, Times]:
    """The times of each cell that has times."""
    axes = {axis: measurements[axis].to_numpy(object) for axis in CELL_AXES}
    is_ok = (measurements["status"] == "ok").to_numpy(bool)
    times_s, startups_s = numbers_of(measurements["step_time_s"]), startups_of(measurements)
    counts, threads = (numbers_of(measurements[name]) for name in ("parameters", "threads"))
    cells = {}
    for rows in rows_of_cells(measurements):
        key = Cell(**{axis: values[rows[0]] for axis, values in axes.items()})
        ok = rows[is_ok[rows] & ~np.isnan(times_s[rows])]
        started = ok[~np.isnan(startups_s[ok])]
        count = threads[rows[0]]
        if len(ok):
            cells[key] = Times(
                means[cell_key(key.values)]["time"],
                len(ok),
                RunCosts(startups_s[started].tolist(), times_s[started].tolist()),
                np.fmax.reduce(counts[rows]),
                int(count) if is_cpu(key.device) and not np.isnan(count) else None,
            )
    return cells


def _startups(contender: RunCosts, baseline: RunCosts, sign: float) -> dict[str, Any]:
    """`sign` is as for `payback`."""
    return {
        "startup_s": contender.startup_s,
        "baseline_startup_s": baseline.startup_s,
        **columns_of(payback(contender, baseline, sign) or Interval(math.nan), "payback_steps{}"),
    }


def sign_of(row: Mapping[str, Any]) -> float:
    """1 if the ratio of a row is significantly above 1, -1 if it is significantly below 1, otherwise 0."""
    log_ratio = np.log([row["ratio"]])
    log_high = np.log([np.nan if row["ratio_high"] is None else row["ratio_high"]])
    return float(sure_signs(log_ratio, log_high - log_ratio).item())

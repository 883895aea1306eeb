"""From trials to cells: one time with its interval.

Samples of one process are strongly correlated and say little about the next process, so only trials count: the time
is the geometric mean of the trials' medians, its 95 % interval a t interval on the log scale (Kalibera and Jones,
"Rigorous benchmarking in reasonable time", 2013).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from crossover.config.words import STATUSES
from crossover.statistics.utilisation import with_utilisation
from crossover.tables.frames import CELL_AXES

Floats = np.ndarray[Any, np.dtype[np.float64]]

CONFIDENCE = 0.95
TRIALS_DIFFER = 1.25
"""Slowest trial over fastest: above it, a further trial lies further off."""


@dataclass(frozen=True)
class TimeInterval:
    """A time with its 95 % interval, in seconds; without an interval where one trial is all there is."""

    mean_s: float
    low_s: float | None
    high_s: float | None


def time_over_trials(medians_s: Sequence[float], together: int = 1) -> TimeInterval:
    """exp(mean(ln t)) and its t interval over the trials' medians, in seconds.

    Of intervals that are read `together`, all hold in 95 % of cases (Bonferroni).
    """
    logs = [math.log(median) for median in medians_s]
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return TimeInterval(math.exp(mean), None, None)
    spread = float(np.std(logs, ddof=1) / math.sqrt(len(logs))) * _t_quantile(len(logs) - 1, together)
    return TimeInterval(math.exp(mean), math.exp(mean - spread), math.exp(mean + spread))


@cache
def _t_quantile(freedom: float, together: int = 1) -> float:
    """The quantile that a 95 % interval takes of Student's t; few degrees of freedom are asked for again and again."""
    return float(stats.t.ppf(1 - (1 - CONFIDENCE) / 2 / together, freedom))


@dataclass(frozen=True)
class Ratio:
    """One time over another with its 95 % interval; without an interval where a side has one trial only."""

    ratio: float
    low: float | None
    high: float | None


def ratio_over_trials(first_s: Sequence[float], second_s: Sequence[float]) -> Ratio:
    """Time of the second side over time of the first, from the medians of at least one trial each, in seconds.

    The interval is Welch's t interval of the difference of the mean logarithms (Welch, "The generalization of
    'Student's' problem when several different population variances are involved", 1947).
    """
    sides = [[math.log(median) for median in medians_s] for medians_s in (first_s, second_s)]
    first, second = (math.fsum(logs) / len(logs) for logs in sides)
    difference = second - first
    if min(map(len, sides)) < 2:
        return Ratio(math.exp(difference), None, None)
    # Written out, since scipy's t test gives no interval where no trial differs from the next.
    variances = [statistics.variance(logs) / len(logs) for logs in sides]
    squares = math.fsum(own**2 / (len(logs) - 1) for own, logs in zip(variances, sides, strict=True))
    if squares == 0:
        return Ratio(math.exp(difference), math.exp(difference), math.exp(difference))
    freedom = math.fsum(variances) ** 2 / squares
    spread = _t_quantile(freedom) * math.sqrt(math.fsum(variances))
    return Ratio(math.exp(difference), math.exp(difference - spread), math.exp(difference + spread))


def paired_ratio(of: Sequence[float], over: Sequence[float], together: int = 1) -> Ratio:
    """Ratio of two values that each of at least one trial holds, with the interval that `time_over_trials` gives it."""
    ratios = time_over_trials([own / other for own, other in zip(of, over, strict=True)], together)
    return Ratio(ratios.mean_s, ratios.low_s, ratios.high_s)


def speedups(trials: pd.DataFrame, baseline: str, contender: str, axis: str = "device") -> pd.DataFrame:
    """Time of the baseline over time of the contender at each x, with its 95 % interval.

    `trials` has columns x, step_time_s and the axis whose values are compared. With fewer than two trials on a side
    the interval is NaN.
    """
    timed = trials.dropna(subset=["x", "step_time_s"])
    sides: dict[float, dict[str, list[float]]] = {}
    for x, side, seconds in zip(timed["x"], timed[axis], timed["step_time_s"], strict=True):
        sides.setdefault(x, {}).setdefault(side, []).append(seconds)
    rows = []
    for x, at_x in sorted(sides.items()):
        if baseline in at_x and contender in at_x:
            found = ratio_over_trials(at_x[contender], at_x[baseline])
            rows.append({"x": x, "speedup": found.ratio, "low": found.low, "high": found.high})
    return pd.DataFrame(rows, columns=["x", "speedup", "low", "high"]).astype(float)


def summarise(measurements: pd.DataFrame, sizes: Mapping[str, Collection[int]] | None = None) -> pd.DataFrame:
    """One row a cell: axes, status, times in seconds with their interval, trials, flags and the device that ran.

    `sizes` holds those of each study's first grid; what has another size was added by refinement.
    A cell is `ok` if all its trials are; otherwise it takes the status of the first trial that is not, and its time
    comes from the trials that are.
    """
    first_grid = None if sizes is None else {study: set(own) for study, own in sizes.items()}
    # Ten thousand cells are cut out of plain arrays in the time that pandas takes for a few hundred.
    columns = {name: measurements[name].to_numpy(object) for name in (*CELL_AXES, *AS_THEY_ARE)}
    numbers = {name: _numbers(measurements[name]).to_numpy() for name in AS_NUMBERS}
    cells = [_summarise_cell(columns, numbers, rows) for rows in _rows_of_cells(measurements)]
    for cell in cells:
        cell["refined"] = first_grid is not None and cell["size"] not in first_grid[str(cell["study"])]
    return with_utilisation(pd.DataFrame(cells, columns=[*CELL_AXES, *CELL_COLUMNS])).convert_dtypes()


CELL_COLUMNS = {
    "size_name": "what the size axis counts",
    "parameters": "trainable parameters of the model",
    "refined": "whether refinement added the size to those of the study",
    "status": "how the cell ended: " + ", ".join(STATUSES),
    "reason": "why, where the status is not ok",
    "step_time_s": "geometric mean of the ok trials' medians, in seconds",
    "step_time_low_s": "lower end of its 95 % interval over trials; empty with one trial",
    "step_time_high_s": "upper end of its 95 % interval over trials; empty with one trial",
    "samples_per_s": "batch size over the time of a step",
    "flops_per_step": "floating-point operations of a step",
    "achieved_tflops": "the same over the time of a step, in TFLOP/s",
    "peak_share": "achieved TFLOP/s over the most that workload matmul reached on the device in the precision",
    "energy_per_step_j": "energy of a step, in joules; geometric mean of the ok trials that have it",
    "peak_allocated_bytes": "peak of what tensors needed, in bytes; median of the ok trials, as down to the errors",
    "device_used_bytes": "memory in use on the whole device after the step, in bytes",
    "rss_growth_bytes": "peak resident memory of the process less that before the step, in bytes",
    "max_abs_error": "largest error of a result's element, as the source measures it",
    "max_relative_error": "the same, relative",
    "timed_steps": "fewest steps that an ok trial timed",
    "trials": "trials that ended ok",
    "trials_not_ok": "trials that did not",
    "flags": "why the result deserves less trust: those of its trials, each once, and `trials_differ`",
    "device_name": "name of the device that ran",
    "hostname": "name of the host",
    "threads": "threads of torch",
}
"""The columns of a cell beside its axes."""


AS_THEY_ARE = ("status", "reason", "flags", "size_name", "device_name", "hostname", "threads")
AS_NUMBERS = (
    *("step_time_s", "parameters", "batch_size", "flops_per_step", "peak_allocated_bytes", "device_used_bytes"),
    *("peak_rss_bytes", "base_rss_bytes", "max_abs_error", "max_relative_error", "timed_steps", "energy_per_step_j"),
)
"""The columns of a trial that a cell is made of."""

Columns = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
Places = np.ndarray[Any, np.dtype[np.intp]]


def _rows_of_cells(measurements: pd.DataFrame) -> list[Places]:
    """The places of each cell's rows, the cells in the order in which they come."""
    cells = measurements.groupby(CELL_AXES, sort=False).ngroup().to_numpy()
    order = np.argsort(cells, kind="stable")
    order = order[cells[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1) if len(order) else []


def _summarise_cell(columns: Columns, numbers: Columns, rows: Places) -> dict[str, object]:
    first = rows[0]
    is_ok = columns["status"][rows] == "ok"
    ok, failed = rows[is_ok], rows[~is_ok]
    own = {name: values[ok] for name, values in numbers.items()}
    times_s = own["step_time_s"].tolist()
    time = time_over_trials(times_s) if times_s else TimeInterval(math.nan, None, None)
    differing = {"trials_differ"} if times_s and max(times_s) > TRIALS_DIFFER * min(times_s) else set()
    joules = own["energy_per_step_j"][own["energy_per_step_j"] > 0]
    return {
        **{axis: columns[axis][first] for axis in CELL_AXES},
        "size_name": columns["size_name"][first],
        "parameters": _most(numbers["parameters"][rows]),
        "status": columns["status"][failed[0]] if len(failed) else "ok",
        "reason": columns["reason"][failed[0]] if len(failed) else None,
        "step_time_s": time.mean_s,
        "step_time_low_s": time.low_s,
        "step_time_high_s": time.high_s,
        "samples_per_s": numbers["batch_size"][first] / time.mean_s,
        "flops_per_step": _median(numbers["flops_per_step"][rows]),
        "energy_per_step_j": time_over_trials(joules.tolist()).mean_s if len(joules) else math.nan,
        "peak_allocated_bytes": _median(own["peak_allocated_bytes"]),
        "device_used_bytes": _median(own["device_used_bytes"]),
        "rss_growth_bytes": _median(own["peak_rss_bytes"] - own["base_rss_bytes"]),
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


def _numbers(values: pd.Series) -> pd.Series:
    return pd.to_numeric(values).astype(float)


def _most(values: Floats) -> float:
    """The largest number; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else math.nan


def _median(values: Floats) -> float:
    """The lower median, a value that was measured; NaN where none was."""
    known = np.sort(values[~np.isnan(values)])
    return float(known[(len(known) - 1) // 2]) if len(known) else math.nan

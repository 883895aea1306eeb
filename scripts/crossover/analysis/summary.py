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

import pandas as pd
from scipy import stats

from crossover.analysis.tables import CELL_AXES
from crossover.analysis.utilisation import with_utilisation
from crossover.records import STATUSES

CONFIDENCE = 0.95
WIDEST_TRUSTED_SHARE = 0.05


@dataclass(frozen=True)
class TimeInterval:
    """A time with its 95 % interval, in seconds; without an interval where one trial is all there is."""

    mean_s: float
    low_s: float | None
    high_s: float | None


def time_over_trials(medians_s: Sequence[float]) -> TimeInterval:
    """exp(mean(ln t)) and its t interval over the trials' medians, in seconds."""
    logs = [math.log(median) for median in medians_s]
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return TimeInterval(math.exp(mean), None, None)
    spread = float(stats.sem(logs)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1))
    return TimeInterval(math.exp(mean), math.exp(mean - spread), math.exp(mean + spread))


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
    spread = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(math.fsum(variances))
    return Ratio(math.exp(difference), math.exp(difference - spread), math.exp(difference + spread))


def paired_ratio(of: Sequence[float], over: Sequence[float]) -> Ratio:
    """Ratio of two values that each of at least one trial holds, with the t interval of its logarithms over trials."""
    ratios = time_over_trials([own / other for own, other in zip(of, over, strict=True)])
    return Ratio(ratios.mean_s, ratios.low_s, ratios.high_s)


def speedups(trials: pd.DataFrame, baseline: str, contender: str, axis: str = "device") -> pd.DataFrame:
    """Time of the baseline over time of the contender at each x, with its 95 % interval.

    `trials` has columns x, step_time_s and the axis whose values are compared. With fewer than two trials on a side
    the interval is NaN.
    """
    rows = []
    for x, at_x in trials.dropna(subset=["step_time_s"]).groupby("x"):
        base, contending = (at_x.loc[at_x[axis] == side, "step_time_s"].tolist() for side in (baseline, contender))
        if base and contending:
            found = ratio_over_trials(contending, base)
            rows.append({"x": x, "speedup": found.ratio, "low": found.low, "high": found.high})
    return pd.DataFrame(rows, columns=["x", "speedup", "low", "high"]).astype(float)


def summarise(measurements: pd.DataFrame, sizes: Mapping[str, Collection[int]] | None = None) -> pd.DataFrame:
    """One row a cell: axes, status, times in seconds with their interval, trials, flags and the device that ran.

    `sizes` holds those of each study's first grid; what has another size was added by refinement.
    A cell is `ok` if all its trials are; otherwise it takes the status of the first trial that is not, and its time
    comes from the trials that are.
    """
    cells = [
        dict(zip(CELL_AXES, key, strict=True)) | _summarise_cell(rows)
        for key, rows in measurements.groupby(CELL_AXES, sort=False)
    ]
    for cell in cells:
        cell["refined"] = sizes is not None and cell["size"] not in sizes[str(cell["study"])]
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


def _summarise_cell(rows: pd.DataFrame) -> dict[str, object]:
    ok = rows[rows["status"] == "ok"]
    failed = rows[rows["status"] != "ok"]
    time = time_over_trials(ok["step_time_s"].tolist()) if len(ok) else TimeInterval(math.nan, None, None)
    first = rows.iloc[0]
    return {
        "size_name": first["size_name"],
        "parameters": rows["parameters"].max(),
        "status": failed["status"].iloc[0] if len(failed) else "ok",
        "reason": failed["reason"].iloc[0] if len(failed) else None,
        "step_time_s": time.mean_s,
        "step_time_low_s": time.low_s,
        "step_time_high_s": time.high_s,
        "samples_per_s": first["batch_size"] / time.mean_s,
        "flops_per_step": _median(rows["flops_per_step"]),
        "peak_allocated_bytes": _median(ok["peak_allocated_bytes"]),
        "device_used_bytes": _median(ok["device_used_bytes"]),
        "rss_growth_bytes": _median(_numbers(ok["peak_rss_bytes"]) - _numbers(ok["base_rss_bytes"])),
        "max_abs_error": _median(ok["max_abs_error"]),
        "max_relative_error": _median(ok["max_relative_error"]),
        "timed_steps": _numbers(ok["timed_steps"]).min(),
        "trials": len(ok),
        "trials_not_ok": len(failed),
        "flags": sorted({flag for flags in ok["flags"] for flag in flags} | _flags_of(time)),
        "device_name": first["device_name"],
        "hostname": first["hostname"],
        "threads": first["threads"],
    }


def _numbers(values: pd.Series) -> pd.Series:
    return pd.to_numeric(values).astype(float)


def _median(values: pd.Series) -> float:
    """The lower median, a value that was measured; NaN where none was."""
    return float(_numbers(values).quantile(interpolation="lower"))


def _flags_of(time: TimeInterval) -> set[str]:
    """Flags that only the trials together can raise."""
    if time.high_s is None or time.high_s / time.mean_s - 1 <= WIDEST_TRUSTED_SHARE:
        return set()
    return {"trials_differ"}

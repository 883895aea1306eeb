"""Latencies of each cell by method: the correct methods and, in some studies, common mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import truediv
from statistics import fmean, median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.compare.cells import rows_of_cells
from crossover.compare.intervals import (
    CLOCK_S,
    ENDS,
    Interval,
    SampleMean,
    columns_of,
    compared,
    paired_ratio,
    time_over_trials,
)
from crossover.config.studies import LATENCY_TURN_STEPS
from crossover.percentiles import LATENCY_PERCENTS, Percentile, percentile_of
from crossover.tables.frames import on_all_cores
from crossover.tables.registry import CELL_AXES, METHODS
from crossover.tables.run_tables import table_of

Trial = Mapping[str, Any]
"""The samples of a trial by method, in seconds; None for a method without samples."""

Samples = NDArray[np.float64]

RIGHT = "latencies_s"
"""The correct method on every device: the host's clock around each synchronised step."""

COLD = "latencies_cold_s"
"""The first steps of a process; the other methods time later steps, in turns."""

LOWERS = "latencies_unsynchronised_s"
"""The only mistake that lowers a latency, since it omits part of the time. The other mistakes raise it."""

MISTAKES = [method for method in METHODS if method not in (RIGHT, "latencies_device_s")]

POOLED = {"p5_s": 5, "q1_s": 25, "median_s": 50, "q3_s": 75, "p95_s": 95}
"""Percentiles of the pooled samples of all trials; LATENCY_PERCENTS are computed for each trial."""


def latencies_of(measurements: pd.DataFrame, together: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Table `latencies`: one row per cell and method with samples from ok trials.

    `together` is the number of comparisons of each study (`crossover.compare.intervals.holm`), by default 1.
    """
    rows = [
        cell | row
        for cell, trials in _cells(measurements)
        for row in _method_rows(trials, (together or {}).get(cell["study"], 1))
    ]
    return table_of("latencies", rows)


def p_values_of_mistakes(measurements: pd.DataFrame) -> Iterator[float]:
    """The p-value of each cell's latency by a mistake; 1 if it is off in the direction that has another cause."""
    for _, trials in _cells(measurements):
        for method in MISTAKES:
            if (log_ratio := log_ratio_to_right(trials, method)) is not None:
                is_in_its_direction = (log_ratio.mean < 0) == (method == LOWERS)
                yield log_ratio.p_value() if is_in_its_direction else 1.0


def _cells(measurements: pd.DataFrame) -> list[tuple[dict[Any, Any], list[dict[Any, Any]]]]:
    """The axes of each cell with samples from ok trials, and the samples of these by method."""
    ok = on_all_cores(measurements[measurements["status"] == "ok"]).dropna(subset=list(METHODS), how="all")
    axes, samples = ok[CELL_AXES].to_dict("records"), ok[list(METHODS)].to_dict("records")
    return [(axes[rows[0]], [samples[row] for row in rows]) for rows in rows_of_cells(ok)]


def _method_rows(trials: Sequence[Trial], together: int) -> Iterator[dict[str, Any]]:
    for method in METHODS:
        samples_of_trials = [np.asarray(trial[method], float) for trial in trials if trial[method] is not None]
        samples = np.concatenate(samples_of_trials) if samples_of_trials else np.empty(0)
        if len(samples):
            log_ratio = log_ratio_to_right(trials, method) if method in MISTAKES else None
            ratio = None if log_ratio is None else log_ratio.exp_interval(together)
            yield {
                "method": method,
                "kind": "mistake" if method in MISTAKES else "right",
                "mean_s": samples.mean(),
                "deviation_s": samples.std(ddof=1) if len(samples) > 1 else None,
                "low_s": samples.min(),
                **dict(zip(POOLED, np.percentile(samples, list(POOLED.values())), strict=True)),
                "high_s": samples.max(),
                **_percentiles(samples_of_trials),
                **({} if ratio is None else columns_of(ratio, "ratio{}")),
                "is_error": log_ratio is not None and is_error(log_ratio, method, together),
                "samples": len(samples),
                "trials": len(samples_of_trials),
            }


def _percentiles(trials: Sequence[Samples]) -> dict[str, Any]:
    """With several trials, the intervals are over trials, since steps of one process are correlated."""
    columns: dict[str, Any] = {"percentiles_over": "trials" if len(trials) > 1 else "steps"}
    for percent in LATENCY_PERCENTS:
        of_trials = list(filter(None, (percentile_of(samples.tolist(), percent) for samples in trials)))
        if len(of_trials) == len(trials):
            percentile_interval: Percentile | Interval = of_trials[0]
            if len(trials) > 1:
                # The clock's resolution is a larger share of a step than of a block.
                values = [percentile.value for percentile in of_trials]
                percentile_interval = time_over_trials(values, resolution=CLOCK_S / min(values))
            ends = dict(zip(ENDS, vars(percentile_interval).values(), strict=True))
            columns |= {f"latency_p{percent}{end}_s": value for end, value in ends.items()}
    return columns


def log_ratio_to_right(trials: Sequence[Trial], method: str) -> SampleMean | None:
    """ln of the ratio of `mistaken_and_right` over trials; None without a trial that has both."""
    both = [trial for trial in trials if trial[method] is not None and trial[RIGHT] is not None]
    pairs = [mistaken_and_right(trial, method) for trial in both]
    return paired_ratio([mistaken for mistaken, _ in pairs], [right for _, right in pairs]) if pairs else None


def is_error(log_ratio: SampleMean, method: str, together: int) -> bool:
    """Whether a latency is significantly off in the direction of the mistake; a shift the other way has another cause.

    `together` is the number of comparisons among which this is one.
    """
    error = "lowered" if method == LOWERS else "raised"
    return compared(log_ratio.exp_interval(together), more="raised", less="lowered") == error


def mistaken_and_right(trial: Trial, method: str) -> tuple[float, float]:
    """The latency of a trial with a mistake, and the correct one with which it is compared, in seconds.

    Without a warm-up, the first step is too long; the mean over many steps would hide it. It is compared with the
    median of the later half of the same steps, since the machine may have changed its speed by the time at which RIGHT
    ran. Of another mistake, the ratio is the median over turns: a turn's mean over that of RIGHT in the same round, so
    that a change of speed between rounds does not count. RIGHT goes on when the turns of the others have ended.
    """
    samples = trial[method]
    if method == COLD:
        return float(samples[0]), float(median(samples[len(samples) // 2 :]))
    mistaken, right = _means_of_turns(samples), _means_of_turns(trial[RIGHT][: len(samples)])
    middle = median(right)
    return median(map(truediv, mistaken, right)) * middle, middle


def _means_of_turns(samples: Sequence[float]) -> list[float]:
    starts = range(0, len(samples), LATENCY_TURN_STEPS)
    return [fmean(samples[start : start + LATENCY_TURN_STEPS]) for start in starts]

"""Latencies of each cell by method: the correct methods and, in some studies, common mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.percentiles import LATENCY_PERCENTS, Percentile, percentile_of
from crossover.statistics.cells import rows_of_cells
from crossover.statistics.intervals import CLOCK_S, ENDS, Interval, columns_of, compared, paired_ratio, time_over_trials
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
"""The only mistake that lowers the mean, since it omits part of the time. The other mistakes raise the mean."""

MISTAKES = [method for method in METHODS if method not in (RIGHT, "latencies_device_s")]

POOLED = {"p5_s": 5, "q1_s": 25, "median_s": 50, "q3_s": 75, "p95_s": 95}
"""Percentiles of the pooled samples of all trials; LATENCY_PERCENTS are computed for each trial."""


def latencies_of(measurements: pd.DataFrame) -> pd.DataFrame:
    """Table `latencies`: one row per cell and method with samples from ok trials."""
    ok = on_all_cores(measurements[measurements["status"] == "ok"]).dropna(subset=list(METHODS), how="all")
    axes, samples = ok[CELL_AXES].to_dict("records"), ok[list(METHODS)].to_dict("records")
    cells = [(axes[rows[0]], [samples[row] for row in rows]) for rows in rows_of_cells(ok)]
    # Readers look for the largest mistake, so the intervals of a study on a machine are simultaneous.
    together: Counter[tuple[str, str]] = Counter()
    for cell, trials in cells:
        together[cell["study"], cell["machine"]] += sum(bool(_with_right(trials, method)) for method in MISTAKES)
    return table_of(
        "latencies",
        [
            cell | row
            for cell, trials in cells
            for row in _method_rows(trials, together[cell["study"], cell["machine"]])
        ],
    )


def _method_rows(trials: Sequence[Trial], together: int) -> Iterator[dict[str, Any]]:
    for method in METHODS:
        samples_of_trials = [np.asarray(trial[method], float) for trial in trials if trial[method] is not None]
        samples = np.concatenate(samples_of_trials) if samples_of_trials else np.empty(0)
        if len(samples):
            ratio = _over_right(trials, method, together) if method in MISTAKES else None
            error = "lowered" if method == LOWERS else "raised"  # a shift the other way has another cause
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
                "is_error": ratio is not None and compared(ratio, more="raised", less="lowered") == error,
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


def _with_right(trials: Sequence[Trial], method: str) -> list[Trial]:
    return [trial for trial in trials if trial[method] is not None and trial[RIGHT] is not None]


def _over_right(trials: Sequence[Trial], method: str, together: int) -> Interval | None:
    both = _with_right(trials, method)
    if not both:
        return None
    mistaken_s = [float(np.mean(trial[method])) for trial in both]
    right_s = [float(np.mean(right_samples(trial, method))) for trial in both]
    return paired_ratio(mistaken_s, right_s, together)


def right_samples(trial: Trial, method: str) -> Any:
    """The correct samples with which a mistake is compared.

    Cold steps are compared with their own later half, since the machine may have changed its speed by the time at which
    the correct method ran.
    """
    return trial[COLD][len(trial[COLD]) // 2 :] if method == COLD else trial[RIGHT]

"""The cells of a machine over many runs: each run's time, and the runs at which it changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.statistics.intervals import CLOCK_RESOLUTION, Floats, reading_error, t_quantile, time_over_trials
from crossover.statistics.run_comparison import times_s
from crossover.tables.registry import CELL_AXES

LINE_AXES = [*CELL_AXES, "device_name", "cpu_model"]
"""What names a line: another device or CPU begins another one."""

LEAST_RUNS = 2
"""Fewest runs of a level. A single run that stands out may be a disturbance; `compare_runs.py` tests it."""

LEAST_VARIANCE = reading_error(CLOCK_RESOLUTION) ** 2
"""Of the logarithms of times that a clock reads."""

HISTORY_COLUMNS = {
    "run": "name of the run",
    "started_at": "start of the run's first trial, UTC",
    "code_version": "git commit of the code that measured",
    "step_time_s": "geometric mean over the run's ok trials",
    "step_time_low_s": "lower end of its 95 % interval over trials; empty of one trial",
    "step_time_high_s": "upper end of its 95 % interval over trials; empty of one trial",
    "trials": "ok trials of the run",
    "level": "number of changes up to this run",
    "ratio": "at a change: time of the level before over time of this level, above 1 it became faster",
    "ratio_low": "lower end of its interval, which holds over all cells and runs together at 95 %",
    "ratio_high": "upper end of this interval",
}
"""The columns of a history beside LINE_AXES."""


def history_of(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each line and run, the runs in the order in which they started; runs are trials by name."""
    trials = pd.concat([table.assign(run=name) for name, table in runs.items()], ignore_index=True)
    ok = trials[trials["status"] == "ok"]
    starts = trials.groupby("run")["started_at"].min()
    lines = list(ok.groupby(LINE_AXES, sort=False, dropna=False))
    rows = []
    for key, line in lines:
        of_run = sorted(line.groupby("run", sort=False), key=lambda named: starts[named[0]])
        times = [time_over_trials(times_s(cell)) for _, cell in of_run]
        levels = changes(np.log([time.mean for time in times]), together=len(lines))
        number = 0
        for index, ((name, cell), time) in enumerate(zip(of_run, times, strict=True)):
            number += index in levels
            rows.append(
                dict(zip(LINE_AXES, key, strict=True))
                | {"run": name, "started_at": starts[name], "code_version": cell["code_version"].iloc[0]}
                | {"step_time_s": time.mean, "step_time_low_s": time.low, "step_time_high_s": time.high}
                | {"trials": len(cell), "level": number}
                | dict(zip(("ratio", "ratio_low", "ratio_high"), levels.get(index, (None,) * 3), strict=True))
            )
    return pd.DataFrame(rows, columns=[*LINE_AXES, *HISTORY_COLUMNS])


def changes(logs: Floats, together: int) -> dict[int, tuple[float, float, float]]:
    """The indices at which a line's level changes, with the ratio of the levels beside each and its interval.

    By circular binary segmentation (Olshen et al., "Circular binary segmentation for the analysis of array-based DNA
    copy number data", Biostatistics 2004): of all stretches, to the end or back to where the rest goes on, the one that
    differs most from the rest counts if its t statistic is significant over all stretches and `together` lines; and so
    on within the parts. Unlike a penalty, that has a known rate of false alarms. The spread is that between runs.
    """
    tests = together * max(len(_stretches(len(logs))), 1)
    points = _segments(logs, tests)
    ends = [0, *points, len(logs)]
    ratios = {}
    for start, point, end in zip(ends, points, ends[2:], strict=False):
        before, after = logs[start:point], logs[point:end]
        difference, freedom = float(before.mean() - after.mean()), end - start - 2
        squares = float(before.var() * len(before) + after.var() * len(after))
        variance = max(squares / freedom, LEAST_VARIANCE) * (1 / len(before) + 1 / len(after))
        half_width = float(t_quantile(freedom, tests)) * math.sqrt(variance)
        low, mean, high = (math.exp(difference + sign * half_width) for sign in (-1, 0, 1))
        ratios[point] = (mean, low, high)
    return ratios


def _segments(logs: Floats, tests: int) -> list[int]:
    """The indices at which a new level begins."""
    runs, stretches = len(logs), _stretches(len(logs))
    if not len(stretches):
        return []
    sums = np.concatenate([[0.0], np.cumsum(logs - logs.mean())])
    start, end = stretches.T
    inside = end - start
    between = (sums[end] - sums[start]) ** 2 * runs / (inside * (runs - inside))
    within = np.maximum((logs.var() * runs - between) / (runs - 2), LEAST_VARIANCE)
    squared_t = between / within
    best = int(squared_t.argmax())
    if squared_t[best] < float(t_quantile(runs - 2, tests)) ** 2:
        return []
    cuts = sorted({*stretches[best].tolist()} - {runs})
    ends = [0, *cuts, runs]
    parts = [[first + point for point in _segments(logs[first:last], tests)] for first, last in pairwise(ends)]
    return sorted([*cuts, *(point for part in parts for point in part)])


def _stretches(runs: int) -> NDArray[np.intp]:
    """Start and end of each stretch to compare with the rest, both of at least LEAST_RUNS runs a part."""
    pairs = [
        (start, end)
        for start in range(LEAST_RUNS, runs)
        for end in range(start + LEAST_RUNS, runs + 1)
        if end == runs or runs - end >= LEAST_RUNS
    ]
    return np.array(pairs, np.intp).reshape(-1, 2)


def relative_speeds(history: pd.DataFrame) -> Sequence[tuple[pd.DataFrame, Floats]]:
    """Each line with its speed in each run, relative to the mean of its first level."""
    lines = [line for _, line in history.groupby(LINE_AXES, sort=False, dropna=False)]
    speeds = []
    for line in lines:
        logs = np.log(line["step_time_s"].to_numpy(float))
        speeds.append((line, np.exp(logs[line["level"].to_numpy() == 0].mean() - logs)))
    return speeds

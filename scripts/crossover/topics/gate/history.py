"""The times of cells over many runs of a machine, and the runs at which they changed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from crossover.compare.intervals import CLOCK_RESOLUTION, Floats, reading_error, t_quantile, time_over_trials
from crossover.errors import UserError
from crossover.tables.registry import CELL_AXES
from crossover.topics.gate.table import times_s

LINE_AXES = [*CELL_AXES, "device_name", "cpu_model"]
"""The columns that identify a line: a cell on given hardware."""

LEAST_RUNS = 2
"""Minimum number of runs at a level; a single outlying run may be a disturbance."""


def history_of(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per line and run, in the order in which the runs started. `runs` maps run names to their trials.

    Column `step_time_s` is the geometric mean over trials, and `speed` is relative to the line's first level. At the
    first run of a later level, `ratio` is the previous level's time over the new level's, so it is above 1 if the new
    level is faster. Raises UserError if no trial is ok.
    """
    trials = pd.concat([table.assign(run=name) for name, table in runs.items()], ignore_index=True)
    trials["run_started_at"] = trials.groupby("run")["started_at"].transform("min")
    lines = list(trials[trials["status"] == "ok"].groupby(LINE_AXES, sort=False, dropna=False))
    if not lines:
        raise UserError(f"{', '.join(runs)}: no trial has a time; name runs with results")
    return pd.concat([_line(line, len(lines)) for _, line in lines], ignore_index=True)


def _line(trials: pd.DataFrame, lines: int) -> pd.DataFrame:
    of_run = trials.groupby(["run_started_at", "run"], dropna=False)
    line = of_run[[*LINE_AXES, "code_version"]].first().reset_index()
    line["step_time_s"] = [time_over_trials(times_s(run)).mean for _, run in of_run]
    logs = np.log(line["step_time_s"].to_numpy())
    points = changes(logs, lines)
    means = [part.mean() for part in np.split(logs, points)]
    ratios = pd.Series(np.exp([before - after for before, after in pairwise(means)]), points)
    return line.assign(speed=np.exp(means[0] - logs), ratio=ratios)


def changes(logs: Floats, lines: int) -> list[int]:
    """The indices of the runs at which the level of a line changes, from the logarithm of each run's time.

    Circular binary segmentation (Olshen et al., "Circular binary segmentation for the analysis of array-based DNA copy
    number data", Biostatistics 2004): the segment with the largest t against the rest is split off if significant after
    Bonferroni correction for all segments and lines. Unlike a penalty per change, this bounds the false-alarm rate.
    """
    return _changes(logs, lines * len(_stretches(len(logs))))


def _changes(logs: Floats, tests: int) -> list[int]:
    runs = len(logs)
    stretches = _stretches(runs)
    if not stretches:
        return []
    sums = np.concatenate([[0.0], np.cumsum(logs - logs.mean())])
    start, end = np.transpose(stretches)
    inside = end - start
    between = (sums[end] - sums[start]) ** 2 * runs / (inside * (runs - inside))
    within = np.maximum((logs.var() * runs - between) / (runs - 2), reading_error(CLOCK_RESOLUTION) ** 2)
    best = int((between / within).argmax())
    if between[best] < within[best] * float(t_quantile(runs - 2, tests)) ** 2:
        return []
    ends = sorted({0, *stretches[best], runs})
    parts = [[first + index for index in _changes(logs[first:last], tests)] for first, last in pairwise(ends)]
    return sorted([*ends[1:-1], *(index for part in parts for index in part)])


def _stretches(runs: int) -> list[tuple[int, int]]:
    """Start and end of each segment to compare with the rest."""
    return [
        (start, end)
        for start in range(LEAST_RUNS, runs)
        for end in range(start + LEAST_RUNS, runs + 1)
        if end == runs or runs - end >= LEAST_RUNS
    ]

"""Two runs compared cell by cell: the ratio of their times with its interval, and a verdict on it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from crossover.statistics.intervals import Interval, ratio_over_trials
from crossover.tables.registry import CELL_AXES

VERDICTS = FASTER, SLOWER, SAME, AMBIGUOUS = "FASTER", "SLOWER", "SAME", "AMBIGUOUS"
MISSING = "missing"

SAME_WITHIN = 1.02
"""Times whose ratio lies between 1 / 1.02 and 1.02 count as the same."""

COMPARISON_COLUMNS = {
    "verdict": "of the second run over the first: FASTER, SLOWER, SAME, AMBIGUOUS; or missing",
    "ratio": "time of the second run over time of the first; empty where one has no time",
    "ratio_low": "lower end of its 95 % interval; empty where a run has fewer than two ok trials",
    "ratio_high": "upper end of its 95 % interval; empty where a run has fewer than two ok trials",
    "within": "whether the two agree within their trials' spread, i.e. the interval holds 1; empty without one",
    "trials_first": "ok trials of the first run",
    "trials_second": "ok trials of the second run",
    "status_first": "how the first run's trials ended, each way once",
    "status_second": "how the second run's trials ended, each way once",
    "missing_in": "the run that lacks the cell: first or second",
}
"""The columns of a comparison beside the axes of its cell."""


def verdict_on(ratio: Interval) -> str:
    """The verdict on the ratio of the second side's time over the first's.

    SAME if the whole 95 % interval lies within 2 % of 1; else FASTER or SLOWER if it excludes 1; else AMBIGUOUS, as
    also with fewer than two trials on a side, which give no interval.
    """
    if ratio.low is None or ratio.high is None:
        return AMBIGUOUS
    if ratio.low >= 1 / SAME_WITHIN and ratio.high <= SAME_WITHIN:
        return SAME
    if ratio.high < 1:
        return FASTER
    return SLOWER if ratio.low > 1 else AMBIGUOUS


def compare_runs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row a cell of either measurements table, in the order of the first; what only the second has comes last.

    To compare cells that differ in an axis, as two studies that measure the same, give it one value on both sides:
    `compare_runs(one, other.assign(study="one"))`.
    """
    firsts, seconds = (dict(iter(run.groupby(CELL_AXES, sort=False))) for run in (first, second))
    rows = [
        dict(zip(CELL_AXES, key, strict=True)) | _compare_cell(firsts.get(key), seconds.get(key))
        for key in dict.fromkeys([*firsts, *seconds])
    ]
    types = {"ratio": "Float64", "ratio_low": "Float64", "ratio_high": "Float64", "within": "boolean"}
    return pd.DataFrame(rows, columns=[*CELL_AXES, *COMPARISON_COLUMNS]).convert_dtypes().astype(types)


def _compare_cell(first: pd.DataFrame | None, second: pd.DataFrame | None) -> dict[str, object]:
    first_s, second_s = _times_s(first), _times_s(second)
    found = ratio_over_trials(first_s, second_s) if first_s and second_s else None
    missing_in = "first" if first is None else "second" if second is None else None
    row: dict[str, object] = {
        "verdict": MISSING if missing_in else verdict_on(found) if found else AMBIGUOUS,
        "trials_first": len(first_s),
        "trials_second": len(second_s),
        "status_first": _statuses(first),
        "status_second": _statuses(second),
        "missing_in": missing_in,
    }
    if found:
        row |= {"ratio": found.mean, "ratio_low": found.low, "ratio_high": found.high}
    if found and found.low is not None and found.high is not None:
        row["within"] = found.low <= 1 <= found.high
    return row


def _times_s(cell: pd.DataFrame | None) -> list[float]:
    return [] if cell is None else [float(time) for time in cell.loc[cell["status"] == "ok", "step_time_s"]]


def _statuses(cell: pd.DataFrame | None) -> str | None:
    return None if cell is None else " ".join(dict.fromkeys(cell["status"]))


def summary(comparison: pd.DataFrame) -> pd.Series:
    """The distribution of a comparison's ratios over the cells with a time in both runs, and of its intervals.

    Quartiles are interpolated on the log scale, where swapping the runs only inverts the summary.
    """
    logs = comparison["ratio"].dropna().astype(float).map(math.log)
    within = comparison["within"].dropna().astype(float)
    quartiles = {"minimum": 0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "maximum": 1}
    return pd.Series(
        {
            "cells": len(logs),
            "geometric_mean": np.exp(logs.mean()),
            **{name: np.exp(logs.quantile(share)) for name, share in quartiles.items()},
            "intervals": len(within),
            "share_within": within.mean(),
        },
        dtype=float,
    )

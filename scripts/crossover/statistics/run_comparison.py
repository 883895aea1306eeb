"""Two runs compared cell by cell: the ratio of their times with its interval, and a verdict on it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crossover.statistics.intervals import ratio_over_trials
from crossover.tables.registry import CELL_AXES

FASTER = "FASTER"
SLOWER = "SLOWER"
SAME = "SAME"
AMBIGUOUS = "AMBIGUOUS"
VERDICTS = (FASTER, SLOWER, SAME, AMBIGUOUS)
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


@dataclass(frozen=True)
class Verdict:
    """How much longer the second side takes, with a verdict; an end that is not known is None."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


def compare_times(first_s: Sequence[float], second_s: Sequence[float]) -> Verdict:
    """Compare the medians of one cell's trials on two sides, in seconds.

    SAME if the whole 95 % interval of the ratio second over first lies within 2 % of 1; else FASTER or SLOWER if it
    excludes 1; else AMBIGUOUS, as also with fewer than two trials on a side, which give no interval.
    """
    if not first_s or not second_s:
        return Verdict(None, None, None, AMBIGUOUS)
    found = ratio_over_trials(first_s, second_s)
    return Verdict(found.mean, found.low, found.high, _word(found.low, found.high))


def _word(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return AMBIGUOUS
    if low >= 1 / SAME_WITHIN and high <= SAME_WITHIN:
        return SAME
    if high < 1:
        return FASTER
    return SLOWER if low > 1 else AMBIGUOUS


def compare_runs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row a cell of either measurements table, in the order of the first; what only the second has comes last.

    To compare cells that differ in an axis, as two studies that measure the same, give it one value on both sides:
    `compare_runs(one, other.assign(study="one"))`.
    """
    firsts, seconds = _cells(first), _cells(second)
    rows = [
        dict(zip(CELL_AXES, key, strict=True)) | _compare_cell(firsts.get(key), seconds.get(key))
        for key in dict.fromkeys([*firsts, *seconds])
    ]
    types = {"ratio": "Float64", "ratio_low": "Float64", "ratio_high": "Float64", "within": "boolean"}
    return pd.DataFrame(rows, columns=[*CELL_AXES, *COMPARISON_COLUMNS]).convert_dtypes().astype(types)


def _cells(measurements: pd.DataFrame) -> Mapping[tuple[Hashable, ...], pd.DataFrame]:
    return {tuple(key): rows for key, rows in measurements.groupby(CELL_AXES, sort=False)}


def _compare_cell(first: pd.DataFrame | None, second: pd.DataFrame | None) -> dict[str, object]:
    first_s, second_s = _times_s(first), _times_s(second)
    found = compare_times(first_s, second_s)
    missing_in = "first" if first is None else "second" if second is None else None
    return {
        "verdict": MISSING if missing_in else found.verdict,
        "ratio": found.ratio,
        "ratio_low": found.low,
        "ratio_high": found.high,
        "within": None if found.low is None or found.high is None else found.low <= 1 <= found.high,
        "trials_first": len(first_s),
        "trials_second": len(second_s),
        "status_first": _statuses(first),
        "status_second": _statuses(second),
        "missing_in": missing_in,
    }


def _times_s(cell: pd.DataFrame | None) -> list[float]:
    return [] if cell is None else [float(time) for time in cell.loc[cell["status"] == "ok", "step_time_s"]]


def _statuses(cell: pd.DataFrame | None) -> str | None:
    return None if cell is None else " ".join(dict.fromkeys(cell["status"]))


@dataclass(frozen=True)
class Summary:
    """The distribution of a comparison's ratios over its cells; None where no cell has one."""

    cells: int
    """Cells with a time in both runs."""
    geometric_mean: float | None
    minimum: float | None
    lower_quartile: float | None
    median: float | None
    upper_quartile: float | None
    maximum: float | None
    intervals: int
    """Cells with an interval."""
    share_within: float | None
    """Share of the intervals that hold 1."""


def summary(comparison: pd.DataFrame) -> Summary:
    """Summarise the ratios of a table of `compare_runs`.

    Quartiles are interpolated on the log scale, where swapping the runs only inverts the summary.
    """
    ratios = comparison["ratio"].dropna().to_numpy(float)
    within = comparison["within"].dropna()
    share = float(within.mean()) if len(within) else None
    if not len(ratios):
        return Summary(0, None, None, None, None, None, None, len(within), share)
    logs = np.log(ratios)
    low, lower, median, upper, high = np.exp(np.quantile(logs, [0, 0.25, 0.5, 0.75, 1])).tolist()
    return Summary(len(ratios), float(np.exp(logs.mean())), low, lower, median, upper, high, len(within), share)

"""Test whether a run is slower than an earlier one, cell by cell, with simultaneous 95 % intervals.

If only trials varied, the gate would call a cell slower in at most about one of forty comparisons of identical runs.
Runs also vary by temperature, memory layout and other tenants, so `calibrate` measures how much runs of identical code
differ.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pandas as pd

from crossover.compare.intervals import (
    CLOCK_RESOLUTION,
    EQUIVALENT,
    FASTER,
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SLOWER,
    SampleMean,
    ratio_of,
    t_quantile,
)
from crossover.compare.shrinkage import with_shared_spread
from crossover.tables.guards import SETTING_COLUMNS, differing_environments
from crossover.tables.registry import CELL_AXES
from crossover.topics.gate.table import MARGIN, MISSING, NO_DATA, cells_of, compare_runs, times_s

MODEL = "model"
ENVIRONMENTS = {
    "hardware": (
        *("device_name", "cpu_model", "cpu_capability", "physical_cores", "threads", "driver_version"),
        *SETTING_COLUMNS,
    ),
    "torch": ("torch_version", "cuda_version", "cudnn_version"),
}
"""The columns that must agree for runs to have the same hardware and torch."""
COMPARABLE_IN = (*ENVIRONMENTS, MODEL)
"""What must be the same in both runs, unless `gate_of` allows it to differ."""

LEAST_IDENTICAL = 5
"""Minimum number of runs for calibration. In simulations, another pair of runs exceeds the limit from five runs in 5 to
8 % of cases, and the limit from three runs in 14 to 16 %.
"""

OUTLYING = 1 / 3
"""A run is an outlier if, without it, the logarithm of the limit falls below this share of its value with the run. In
simulations of five runs that differ by 5 % without an outlier, a run is named in 1 % of cases with six cells, and in
23 % with a single cell.
"""

TRIALS_FOR_OWN_VARIANCE = 8
"""Minimum number of trials for a cell to keep its own variance. A shared variance detects smaller slowdowns if the
spreads of cells are alike, but hides a slowdown of a quiet cell among noisy ones.
"""

POWER = 0.9
"""Probability with which the gate detects a slowdown of size `detectable`."""

BLIND_LIMITS, BLIND_LEAST = 5, 0.2
"""A cell without a verdict is undecided if its detectable slowdown exceeds BLIND_LIMITS times the gate's limit, and
BLIND_LEAST. In simulations with a limit of 2 % and 16 trials, no pair of equal runs is undecided if trials differ by 2
to 5 %, and 99 % are if trials differ by 10 %.
"""

PASSED, UNDECIDED, NOT_COMPARABLE = "passed", "undecided", "not_comparable"
EXIT_STATUSES = {PASSED: 0, SLOWER: 1, MISSING: 2, SINGLE_TRIAL: 2, UNDECIDED: 2, NOT_COMPARABLE: 2}


@dataclass(frozen=True)
class Calibration:
    """Differences between runs of identical code."""

    significant: float
    """Largest distance of a simultaneous interval from 1, over all pairs of runs, as a share; 0 if all contain 1."""
    measured: float
    """Largest slowdown of a cell from one of the runs to another, as a share, significant or not."""
    outlier: str | None
    """Name of the run without which `significant` would be much smaller."""


@dataclass(frozen=True)
class Gate:
    """The result of a gate."""

    outcome: str
    """A key of EXIT_STATUSES."""
    limit: float
    """Slowdown above which a cell counts as slower, as a share: 0.05 is 5 %."""
    calibration: Calibration | None
    """None without runs of identical code."""
    cells: pd.DataFrame
    """The result of `compare_cells`, with the verdicts at the limit."""
    differences: Mapping[str, Sequence[str]]
    """Differences between the runs that are not allowed, by entry of COMPARABLE_IN."""

    @property
    def slower(self) -> pd.DataFrame:
        """The cells that are slower by more than the limit, the slowest first."""
        return self.cells[self.cells["verdict"] == SLOWER].sort_values("ratio")

    @property
    def missing(self) -> pd.DataFrame:
        """The cells that are absent from a run, or without a time in the second only."""
        verdicts, had_time = self.cells["verdict"], self.cells["trials_first"] > 0
        return self.cells[(verdicts == MISSING) | ((verdicts == NO_DATA) & had_time)]

    @property
    def single_trial(self) -> pd.DataFrame:
        """The cells with a time in both runs, of which at least one has a single trial."""
        return self.cells[self.cells["verdict"] == SINGLE_TRIAL]

    @property
    def undecided(self) -> pd.DataFrame:
        """The cells that may be slower by more than the limit and vary too much to tell; see BLIND_LIMITS."""
        may_be_slower = (self.cells["verdict"] == INCONCLUSIVE) & (self.cells["ratio_low"] < 1 / (1 + self.limit))
        return self.cells[(may_be_slower & (self.cells["detectable"] > self.most_detectable)).fillna(value=False)]

    @property
    def most_detectable(self) -> float:
        """Detectable slowdown above which a cell without a verdict is undecided, as a share."""
        return max(BLIND_LIMITS * self.limit, BLIND_LEAST)


def gate_of(
    first: pd.DataFrame,
    second: pd.DataFrame,
    by: float = MARGIN,
    identical: Mapping[str, pd.DataFrame] | None = None,
    allowed: Collection[str] = (),
) -> Gate:
    """Test whether any cell of the second run is slower than in the first by more than the limit.

    The limit is the larger of `by` and the largest significant slowdown between `identical` runs, which are given by
    name. `allowed` are the entries of COMPARABLE_IN that may differ.
    """
    cells = compare_cells(first, second)
    calibration = calibrate(identical, by) if identical else None
    limit = max(by, calibration.significant) if calibration else by
    verdicts = [
        _verdict(low, high, limit) if pd.notna(low) else verdict
        for verdict, low, high in zip(cells["verdict"], cells["ratio_low"], cells["ratio_high"], strict=True)
    ]
    cells = cells.assign(verdict=verdicts, detectable=(1 + limit) * cells["detectable"] - 1)
    differences = {name: texts for name, texts in differences_of(first, second, cells).items() if name not in allowed}
    gate = Gate(PASSED, limit, calibration, cells, differences)
    if differences:
        return replace(gate, outcome=NOT_COMPARABLE)
    if len(gate.slower):
        return replace(gate, outcome=SLOWER)
    if len(gate.missing) or not len(cells[cells["verdict"] != NO_DATA]):
        return replace(gate, outcome=MISSING)
    if len(gate.single_trial):
        return replace(gate, outcome=SINGLE_TRIAL)
    return replace(gate, outcome=UNDECIDED) if len(gate.undecided) else gate


def _verdict(low: float, high: float, limit: float) -> str:
    most = 1 + limit
    if high < 1 / most:
        return SLOWER
    if low > most:
        return FASTER
    return EQUIVALENT if low >= 1 / most and high <= most else INCONCLUSIVE


def compare_cells(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """`compare_runs` with intervals that are simultaneous over all cells; cells with few trials share their variances.

    `within` is about these intervals. Column `detectable` is the smallest factor beyond the limit that the gate detects
    with probability POWER.
    """
    comparison = compare_runs(first, second)
    judged = comparison.index[comparison["ratio_low"].notna()]
    keys = list(comparison.loc[judged, CELL_AXES].itertuples(index=False, name=None))
    old, new = (_means(run, keys) for run in (first, second))
    intervals = []
    for before, after in zip(old, new, strict=True):
        ratio, difference = ratio_of(after, before, len(keys)), after - before
        quantiles = t_quantile(difference.freedom, len(keys)) + t_quantile(difference.freedom, 1, 2 * POWER - 1)
        intervals.append((ratio.low, ratio.high, math.exp(float(quantiles) * math.sqrt(difference.variance))))
    columns = pd.DataFrame(intervals, judged, ["ratio_low", "ratio_high", "detectable"], dtype="Float64")
    columns["within"] = (columns["ratio_low"] <= 1) & (columns["ratio_high"] >= 1)
    return comparison.assign(**columns.reindex(comparison.index))


def _means(run: pd.DataFrame, keys: Sequence[tuple[object, ...]]) -> list[SampleMean]:
    cells = cells_of(run)
    means = [SampleMean.of_times(times_s(cells[key])) for key in keys]
    shared_means = with_shared_spread(means, CLOCK_RESOLUTION)
    return [
        mean if mean.freedom + 1 >= TRIALS_FOR_OWN_VARIANCE else shared
        for mean, shared in zip(means, shared_means, strict=True)
    ]


def calibrate(runs: Mapping[str, pd.DataFrame], by: float = 0.0) -> Calibration:
    """The differences between identical runs, given by name; `by` is the minimum limit of the gate."""
    measured, significant = [0.0], {}
    for pair in combinations(runs, 2):
        cells = compare_cells(*(runs[name] for name in pair))
        ratio, low, high = (
            cells[end].dropna().astype(float).map(math.log) for end in ("ratio", "ratio_low", "ratio_high")
        )
        measured += ratio.abs().tolist()
        significant[pair] = max(0.0, *low, *-high)
    largest = max(significant.values(), default=0.0)
    without = {name: max((log for pair, log in significant.items() if name not in pair), default=0.0) for name in runs}
    suspect = min(without, key=without.__getitem__)
    is_outlier = max(without[suspect], math.log1p(by)) < OUTLYING * largest
    return Calibration(math.expm1(largest), math.expm1(max(measured)), suspect if is_outlier else None)


def differences_of(first: pd.DataFrame, second: pd.DataFrame, comparison: pd.DataFrame) -> dict[str, list[str]]:
    """The differences between two runs by entry of COMPARABLE_IN; `comparison` is the result of `compare_runs`."""
    differs = [MODEL in (parts or "").split() for parts in comparison["differing_code"].astype(object).fillna("")]
    models = comparison.loc[differs, ["study", "workload"]].drop_duplicates()
    differing = {name: differing_environments(first, second, columns) for name, columns in ENVIRONMENTS.items()}
    differing[MODEL] = [f"code of {workload} in {study}" for study, workload in models.itertuples(index=False)]
    return {name: texts for name, texts in differing.items() if texts}

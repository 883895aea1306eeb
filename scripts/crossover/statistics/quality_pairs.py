"""Trainings paired by seed with the CPU's in fp32, and the mean difference of a metric over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from crossover.config.words import BASELINE
from crossover.statistics.summary import CONFIDENCE
from crossover.tables.frames import CELL_AXES

BASELINE_PRECISION = "fp32"
MODEL_AXES = [axis for axis in CELL_AXES if axis not in ("device", "precision")]
"""The axes that compared trainings share."""


def is_baseline(rows: pd.DataFrame) -> pd.Series:
    """Which trainings are those that all others are compared with."""
    return (rows["device"] == BASELINE) & (rows["precision"] == BASELINE_PRECISION)


def paired_by_seed(trainings: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """Each training beside the baseline's of the same model and seed, whose columns end in `_baseline`."""
    same = [axis for axis in MODEL_AXES if axis in trainings.columns]
    return trainings.merge(baseline, on=[*same, "seed"], suffixes=("", "_baseline"))


@dataclass(frozen=True)
class Difference:
    """A metric of trainings minus that of the CPU in fp32, paired by seed; no interval from one seed."""

    mean: float
    low: float | None
    high: float | None
    largest: float
    """Of a single seed, by its size."""
    seeds: int


def difference_over_seeds(differences: Sequence[float]) -> Difference:
    """The mean of at least one paired difference with its t interval (Student, "The probable error of a mean")."""
    count = len(differences)
    mean = math.fsum(differences) / count
    largest = max(differences, key=abs)
    if count < 2:
        return Difference(mean, None, None, largest, count)
    spread = float(stats.sem(differences)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    return Difference(mean, mean - spread, mean + spread, largest, count)

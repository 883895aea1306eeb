"""What a claim is checked on: the ok trials of one cell, and the values that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from crossover.analysis.tables import of_study
from crossover.claim_forms import Side, axes_words, metrics, several_cells
from crossover.errors import UserError
from crossover.records import AXES
from crossover.studies import steps_of_run


class NothingToTestError(Exception):
    """The data do not hold what a claim speaks of; its text says what is missing."""


def pinned(table: pd.DataFrame, axes: Mapping[str, Any]) -> pd.DataFrame:
    """The rows with the pinned values; raises NothingToTestError naming the first value that no row has."""
    for axis, value in axes.items():
        known = table[axis] if axis in table.columns else pd.Series(pd.NA, table.index, object)
        chosen = table[(known == value).fillna(False).astype(bool)]
        if chosen.empty:
            values = ", ".join(str(one) for one in sorted(known.dropna().unique()))
            only = f"only {values}" if values else "nor with any other"
            raise NothingToTestError(f"no trial with {axis} {value} was measured, {only}")
        table = chosen
    return table


def loose_axes(rows: pd.DataFrame) -> list[str]:
    """The axes in which rows differ."""
    return [axis for axis in AXES if axis in rows.columns and rows[axis].nunique(dropna=False) > 1]


def ok_trials(measurements: pd.DataFrame, study: str, axes: Mapping[str, Any]) -> pd.DataFrame:
    """The ok trials of the one cell that a claim selects.

    Raises NothingToTestError where there are none, and UserError where the selection leaves several cells.
    """
    own = of_study(measurements, study)
    if own.empty:
        raise NothingToTestError("nothing of this study was measured")
    rows = pinned(own, axes)
    if loose := loose_axes(rows):
        raise UserError(f"study '{study}': claims: {several_cells(axes, loose)}")
    ok = rows[rows["status"] == "ok"]
    if ok.empty:
        ends = rows["status"].dropna()
        reasons = rows["reason"].dropna() if "reason" in rows.columns else ends[:0]
        why = f" ({reasons.iloc[0]})" if len(reasons) else ""
        raise NothingToTestError(
            f"no ok trial of {axes_words(axes)}: {', '.join(ends.unique()) or 'none was measured'}{why}"
        )
    return ok


def metric_values(rows: pd.DataFrame, side: Side, steps_per_run: Any) -> pd.Series:
    """One value a trial, in its column's unit; a list counts as its mean. What a trial does not hold is NaN.

    Raises NothingToTestError where no trial holds any.
    """
    if side.metric == "samples_per_s":
        values = rows["batch_size"].astype(float) / rows["step_time_s"].astype(float)
    elif side.metric == "run_time_s":
        values = rows["step_time_s"].astype(float) * (
            steps_of_run(steps_per_run, int(rows["batch_size"].iloc[0])) or np.nan
        )
    elif side.metric not in rows.columns:
        values = pd.Series(np.nan, rows.index)
    elif metrics()[side.metric]:
        values = rows[side.metric].map(_mean).astype(float)
    else:
        values = rows[side.metric].astype(float)
    if values.isna().all():
        raise NothingToTestError(f"{side.metric} was not measured for {side.words}")
    if (values <= 0).any():
        raise NothingToTestError(f"{side.metric} is 0 for {side.words}, so that no ratio can be given")
    return values


def _mean(values: Any) -> float:
    return float(np.mean(values)) if values is not None and np.size(values) and np.ndim(values) else np.nan

"""What a claim is checked on: the ok trials of one cell, and the values that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crossover.answers.wording import listed
from crossover.claims.claim_quantities import cell_words, devices_apart, metric_words, value_words
from crossover.config.claim_forms import Side, several_cells
from crossover.config.studies import steps_of_run
from crossover.config.words import AXES
from crossover.errors import UserError
from crossover.figures.style import spaced
from crossover.tables.frames import of_study
from crossover.tables.metrics import metrics


class NothingToTestError(Exception):
    """The data do not hold what a claim speaks of; its text says what is missing."""


def pinned(table: pd.DataFrame, axes: Mapping[str, Any]) -> pd.DataFrame:
    """The rows with the pinned values; raises NothingToTestError naming the first value that no row has."""
    for axis, value in axes.items():
        known = table[axis] if axis in table.columns else pd.Series(pd.NA, table.index, object)
        chosen = table[(known == value).fillna(False).astype(bool)]
        if chosen.empty:
            raise NothingToTestError(_not_among(axis, value, sorted(known.dropna().unique())))
        table = chosen
    return table


def _not_among(axis: str, value: Any, measured: Sequence[Any]) -> str:
    if axis == "device":
        asked, *others = devices_apart([str(value), *map(str, measured)])
        return f"no trial on the {asked} was measured" + (f", only on the {listed(others)}" if others else "")
    only = f"only {listed([value_words(axis, one) for one in measured])}" if measured else "nor with any other"
    return f"no trial with {spaced(axis)} {value_words(axis, value)} was measured, {only}"


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
            f"no ok trial ({cell_words(axes)}): {', '.join(ends.unique()) or 'none was measured'}{why}"
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
        raise NothingToTestError(f"{metric_words(side.metric)}: not measured ({cell_words(side.axes)})")
    if (values <= 0).any():
        raise NothingToTestError(f"{metric_words(side.metric)}: 0, so that no ratio is given ({cell_words(side.axes)})")
    return values


def _mean(values: Any) -> float:
    return float(np.mean(values)) if values is not None and np.size(values) and np.ndim(values) else np.nan

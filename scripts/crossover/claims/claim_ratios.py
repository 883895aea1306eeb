"""Claims on ratios: of two cells, or of two columns of one cell."""

from __future__ import annotations

from typing import Any

import pandas as pd

from crossover.claims.claim_quantities import metric_words
from crossover.claims.findings import Finding, judge, just_below
from crossover.claims.selections import NothingToTestError, metric_values, ok_trials
from crossover.config.claim_forms import RatioWithin
from crossover.statistics.summary import Ratio, paired_ratio, ratio_over_trials


def check_ratio(form: RatioWithin, study: str, measurements: pd.DataFrame, steps_per_run: Any) -> Finding:
    """Hold a ratio over trials against its claimed range. Raises NothingToTestError, and UserError as `ok_trials`."""
    found = _ratio(form, study, measurements, steps_per_run)
    if form.low is None:
        return judge(found.ratio, found.low, found.high, 0, just_below(form.high), form.claimed)
    return judge(found.ratio, found.low, found.high, form.low, form.high, f"within {form.claimed}")


def _ratio(form: RatioWithin, study: str, measurements: pd.DataFrame, steps_per_run: Any) -> Ratio:
    """Two cells give Welch's interval over their trials; two columns of one cell are paired by trial."""
    numbered = measurements.reset_index(drop=True)
    of_rows, over_rows = (ok_trials(numbered, study, side.axes) for side in (form.of, form.over))
    of = metric_values(of_rows, form.of, steps_per_run)
    over = metric_values(over_rows, form.over, steps_per_run)
    if not of_rows.index.equals(over_rows.index):
        return ratio_over_trials(over.dropna().tolist(), of.dropna().tolist())
    both = of.notna() & over.notna()
    if not both.any():
        raise NothingToTestError(
            f"no trial holds both {metric_words(form.of.metric)} and {metric_words(form.over.metric)}"
        )
    return paired_ratio(of[both].tolist(), over[both].tolist())

"""Check claims about cells: ratios of two cells or of two metrics of a cell, and equal quality of trained models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from crossover.compare.intervals import INCONCLUSIVE, RESOLUTIONS, Interval, SampleMean, paired_ratio
from crossover.compare.payback import payback, run_costs
from crossover.config.claim_forms import PaybackWithin, RatioWithin, SameQuality, Side
from crossover.config.study import steps_of_run
from crossover.config.words import BASELINE
from crossover.config.workloads import workload_traits
from crossover.tables.frames import first_row, of_study, records, rows_with
from crossover.tables.labels import side_word
from crossover.tables.registry import CELL_AXES, DETERMINISTIC, claim_metrics
from crossover.topics.claims.findings import (
    COMPATIBLE,
    DIFFERS,
    NO_DATA,
    REPRODUCED,
    ROUNDING,
    Finding,
    NoFindingError,
    axes_label,
    check_single,
    judge,
    pinned,
)
from crossover.topics.latency.table import MISTAKES, RIGHT, log_ratio_to_right
from crossover.topics.quality.table import is_baseline

MOST_DECISIVE = (DIFFERS, NO_DATA, INCONCLUSIVE, COMPATIBLE, REPRODUCED)
"""Verdicts by priority. A claim about quality gets the first of these that any of its cells has."""


def check_ratio(
    form: RatioWithin, study: str, measurements: pd.DataFrame, steps_per_run: Any, together: int = 1
) -> Finding:
    """Compare a ratio with its claim; raises NoFindingError without data, UserError if a side selects several cells.

    `together` is the number of comparisons of which this is one.
    """
    if isinstance(form, PaybackWithin):
        return _check_payback(form, study, measurements, together)
    return judge_ratio(form, *ratio_of_sides(form.of, form.over, study, measurements, steps_per_run), together)


def _check_payback(form: PaybackWithin, study: str, measurements: pd.DataFrame, together: int) -> Finding:
    """Compare the number of steps after which `of` is ahead with its claim; errors as in `check_ratio`."""
    step = interval_of_ratio(ratio_of_sides(form.of, form.over, study, measurements)[0], together)
    if step.low is not None and step.low > 1:
        return Finding("never_ahead")
    of, over = (run_costs(_ok_trials(measurements, study, side.axes)) for side in (form.of, form.over))
    if not (of.startups_s and over.startups_s):
        raise NoFindingError("not_measured", "start-up")
    steps = payback(of, over, 1.0)
    if steps and steps.low is not None and steps.low > form.high:
        return Finding("outside", steps.mean, steps.low, steps.high)
    if steps is None or (step.high is not None and step.high > 1):
        return Finding("not_faster", None if steps is None else steps.mean)
    if steps.low is not None and steps.high is None:
        return Finding("no_end", steps.mean, steps.low)
    return judge(steps.mean, steps.low, steps.high, form.low or 0.0, form.high)


def judge_ratio(form: RatioWithin, ratio: SampleMean | Interval, trials: int, together: int) -> Finding:
    """Compare the results of `ratio_of_sides` with a claim."""
    interval = interval_of_ratio(ratio, together)
    below_limit = form.high - 2 * ROUNDING * abs(form.high)  # a ratio that equals the limit is not below it
    least, most = (0.0, below_limit) if form.low is None else (form.low, form.high)
    finding = judge(interval.mean, interval.low, interval.high, least, most)
    if finding.reason == "one_trial" and trials > 1:
        return replace(finding, reason="first_trial")
    return finding


def ratio_of_sides(
    of: Side, over: Side, study: str, measurements: pd.DataFrame, steps_per_run: Any = None
) -> tuple[SampleMean | Interval, int]:
    """The ratio of the metrics of both sides, and the smaller number of ok trials; errors as in `check_ratio`.

    The ratio is given as ln, summarised over trials; that of deterministic metrics is an Interval.
    """
    numbered = measurements.reset_index(drop=True)
    of_rows, over_rows = (_ok_trials(numbered, study, side.axes) for side in (of, over))
    if of_rows.index.equals(over_rows.index) and (method := _mistake_of(of.metric, over.metric)):
        log_ratio = log_ratio_to_right(records(of_rows.reindex(columns=[RIGHT, method])), method)
        if log_ratio is None:
            raise NoFindingError("no_common_trial")
        mean = log_ratio.mean if of.metric == method else -log_ratio.mean
        return replace(log_ratio, mean=mean), int(log_ratio.freedom) + 1
    of_values = _metric_values(of_rows, of, steps_per_run)
    over_values = _metric_values(over_rows, over, steps_per_run)
    trials = min(len(of_values), len(over_values))
    if {of.metric, over.metric} <= DETERMINISTIC.keys():
        return _ratio_of_counts(of_values, over_values, of.metric, over.metric), trials
    is_energy = any(side.metric.startswith("energy") for side in (of, over))
    return _ratio_over_trials(of_values, over_values, RESOLUTIONS["energy" if is_energy else "time"]), trials


def interval_of_ratio(ratio: SampleMean | Interval, together: int) -> Interval:
    """The interval of a ratio from `ratio_of_sides`; one of deterministic metrics needs no correction."""
    return ratio if isinstance(ratio, Interval) else ratio.exp_interval(together)


def open_finding(
    form: RatioWithin, study: str, measurements: pd.DataFrame, steps_per_run: Any, most_trials: int
) -> Finding | None:
    """The finding on a claim if it is inconclusive, and `most_trials` of each cell may decide it; None otherwise.

    They may if they would with the ratio and the spread seen so far, or if these are unknown: for a payback and for
    single trials. Errors as in `check_ratio`.
    """
    expected = None
    if isinstance(form, PaybackWithin):
        finding = _check_payback(form, study, measurements, 1)
    else:
        ratio, trials = ratio_of_sides(form.of, form.over, study, measurements, steps_per_run)
        finding = judge_ratio(form, ratio, trials, 1)
        if isinstance(ratio, SampleMean) and ratio.freedom:
            expected = judge_ratio(form, ratio.expected_after(most_trials / trials), most_trials, 1)
    is_hopeless = expected is not None and expected.verdict == INCONCLUSIVE
    return finding if finding.verdict == INCONCLUSIVE and not is_hopeless else None


def rests_on_latencies(form: RatioWithin) -> bool:
    """Whether a claim is about the effect of a mistake, which table `latencies` has."""
    return form.of.axes == form.over.axes and _mistake_of(form.of.metric, form.over.metric) is not None


def _mistake_of(*metrics: str) -> str | None:
    """The mistake of a ratio that compares it with RIGHT."""
    others = [metric for metric in metrics if metric != RIGHT]
    return others[0] if len(others) == 1 and others[0] in MISTAKES else None


def _ratio_over_trials(of: pd.Series, over: pd.Series, resolution: float) -> SampleMean:
    """The ratio of two cells with Welch's error, or of two metrics of a cell, paired by trial."""
    if not of.index.equals(over.index):
        means = [SampleMean.of_times(values.dropna().tolist(), resolution) for values in (of, over)]
        return means[0] - means[1]
    both = of.notna() & over.notna()
    if not both.any():
        raise NoFindingError("no_common_trial")
    return paired_ratio(of[both].tolist(), over[both].tolist(), resolution)


def _ratio_of_counts(of: pd.Series, over: pd.Series, of_metric: str, over_metric: str) -> Interval:
    """The ratio of two deterministic metrics, with its range over trials, widened by the tolerances of both."""
    factor = _factor(of, of_metric) * _factor(over, over_metric)
    return Interval(of.mean() / over.mean(), of.min() / over.max() / factor, of.max() / over.min() * factor)


def _factor(values: pd.Series, metric: str) -> float:
    tolerance = DETERMINISTIC[metric]
    return 1 + tolerance.share + tolerance.absolute / float(values.min())


def _ok_trials(measurements: pd.DataFrame, study: str, axes: Mapping[str, Any]) -> pd.DataFrame:
    trials = of_study(measurements, study)
    if trials.empty:
        raise NoFindingError("no_rows")
    rows = pinned(trials, axes)
    check_single(rows, study, axes)
    ok = rows[rows["status"] == "ok"]
    if ok.empty:
        raise NoFindingError("not_ok", _with_statuses(axes_label(axes), rows["status"].dropna()))
    return ok


def _with_statuses(label: str, statuses: pd.Series) -> str:
    words = ", ".join(statuses.unique())
    return f"{label}: {words}" if label else words


def _metric_values(rows: pd.DataFrame, side: Side, steps_per_run: Any) -> pd.Series:
    """A metric by trial; a list counts as its mean.

    Raises NoFindingError if all values are missing or one is not above 0.
    """
    if side.metric == "samples_per_s":
        samples = rows["samples_per_step"].fillna(rows["batch_size"]).astype(float)
        values = samples / rows["step_time_s"].astype(float)
    elif side.metric == "run_time_s":
        steps = steps_of_run(steps_per_run, int(rows["batch_size"].iloc[0]))
        values = rows["step_time_s"].astype(float) * (steps or np.nan)
    elif side.metric not in rows.columns:
        values = pd.Series(np.nan, rows.index)
    elif claim_metrics()[side.metric]:
        values = rows[side.metric].map(_mean).astype(float)
    else:
        values = rows[side.metric].astype(float)
    if values.isna().all() or (values <= 0).any():
        label = ", ".join(filter(None, [side.metric, axes_label(side.axes)]))
        raise NoFindingError("not_measured" if values.isna().all() else "zero", label)
    return values


def _mean(values: Any) -> float:
    return float(np.mean(values)) if values is not None and np.size(values) and np.ndim(values) else np.nan


def check_quality(form: SameQuality, study: str, quality: pd.DataFrame) -> Finding:
    """Compare the difference of each accelerator and precision from the CPU in fp32 with the limit.

    The finding is that of the decisive cell, by MOST_DECISIVE, then by the size of the difference. Unsupported
    precisions are left out, and a cell with any other failed training is `no_data`. The CPU in other precisions counts
    only if `where` pins the device. Raises NoFindingError without data, and for trainings on generated rows, since
    these do not show the quality on real rows.
    """
    trained = form.study or study
    trainings = of_study(quality, trained)
    if trainings.empty:
        raise NoFindingError("not_trained", trained)
    if trainings["generated_data"].fillna(False).any():
        raise NoFindingError("generated_data", f"datasets.{workload_traits(trainings['workload'].iloc[0]).dataset}")
    chosen = pinned(trainings, form.where)
    others = chosen[~is_baseline(chosen)]
    if "device" not in form.where:
        others = others[others["device"] != BASELINE]
        if others.empty:
            raise NoFindingError("no_accelerator")
    others = others[others["status"] != "unsupported"]
    baseline = trainings[is_baseline(trainings)]
    findings = [_compare(form, rows, baseline) for _, rows in others.groupby(CELL_AXES, sort=False)]
    if not findings:
        raise NoFindingError("no_contender")
    verdicts = {finding.verdict for finding in findings}
    decisive = next(verdict for verdict in MOST_DECISIVE if verdict in verdicts)
    return max(
        (finding for finding in findings if finding.verdict == decisive),
        key=lambda finding: abs(finding.measured or 0),
    )


def _compare(form: SameQuality, trainings: pd.DataFrame, baseline: pd.DataFrame) -> Finding:
    cell = first_row(trainings)
    name = f"{side_word(cell['device'])}, {cell['precision']}"
    failed = trainings.loc[trainings[form.metric].isna(), "status"]
    if len(failed):
        return Finding("failed", place=_with_statuses(name, failed))
    mean, low, high = (cell[f"{form.metric}_difference{end}"] for end in ("", "_low", "_high"))
    if (cell["seeds_compared"] or 0) > 1:
        return judge(mean, low, high, -form.within, form.within, name)
    same = rows_with(baseline, [axis for axis in CELL_AXES if axis not in ("device", "precision")], cell)
    failed = same.loc[same["seed"].isin(trainings["seed"]) & same[form.metric].isna(), "status"]
    if len(failed):
        return Finding("baseline_failed", place=_with_statuses(name, failed))
    return Finding("one_seed", mean, place=name)

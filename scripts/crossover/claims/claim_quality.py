"""Claims that a device or a precision leaves the trained model as good as it was."""

from __future__ import annotations

import pandas as pd

from crossover.claims.findings import DIFFERS, MORE_SEEDS, NOT_TESTABLE, REPRODUCED, Finding, judge
from crossover.claims.selections import NothingToTestError, pinned
from crossover.config.claim_forms import SameQuality
from crossover.config.words import AXES, BASELINE
from crossover.figures.style import side_word
from crossover.statistics.quality_pairs import BASELINE_PRECISION, difference_over_seeds, is_baseline, paired_by_seed
from crossover.tables.frames import of_study


def check_quality(form: SameQuality, study: str, quality: pd.DataFrame | None) -> Finding:
    """Hold the differences of each accelerator and precision to the CPU in fp32, paired by seed, against their limit.

    Every one must lie within it to be the same; the finding shows the one that decides. A precision that a device lacks
    decides nothing, a training that failed otherwise keeps the claim open. The CPU's other precisions are compared only
    where `where` pins it. Raises NothingToTestError.
    """
    trained = form.study or study
    own = None if quality is None else of_study(quality, trained)
    if own is None or own.empty:
        raise NothingToTestError(f"no model of study '{trained}' was trained: add it to 'studies' in the config")
    if "status" not in own.columns:  # a table made elsewhere
        own = own.assign(status=["unsupported" if lacking else "ok" for lacking in own[form.metric].isna()])
    chosen = pinned(own, form.where)
    others = chosen[~is_baseline(chosen)]
    if "device" not in form.where:
        others = others[others["device"] != BASELINE]
        if others.empty:
            raise NothingToTestError("only the CPU trained: run it on a machine that has a GPU")
    others = others[others["status"] != "unsupported"]
    cell = [axis for axis in AXES if axis in own.columns]
    reference = own[is_baseline(own)]
    findings = [_compare(form, rows, reference) for _, rows in others.groupby(cell, sort=False)]
    if not findings:
        raise NothingToTestError("no other device or precision was trained")
    worst = (_largest(findings, verdict) for verdict in (DIFFERS, NOT_TESTABLE, REPRODUCED))
    return next(found for found in worst if found is not None)


def _compare(form: SameQuality, trainings: pd.DataFrame, reference: pd.DataFrame) -> Finding:
    """One cell's trainings against those that differ from it in nothing but device and precision."""
    first = trainings.iloc[0]
    pairs = paired_by_seed(trainings, reference)
    differences = (pairs[form.metric].astype(float) - pairs[f"{form.metric}_baseline"].astype(float)).dropna()
    baseline = f"{side_word(BASELINE)} in {BASELINE_PRECISION}"
    name = f"{side_word(first['device'])} in {first['precision']} against {baseline}"
    if (failed := trainings.loc[trainings[form.metric].isna(), "status"]).size:
        return Finding(NOT_TESTABLE, f"{name}: trainings failed ({', '.join(dict.fromkeys(failed))})", None)
    failed = pairs.loc[pairs[f"{form.metric}_baseline"].isna(), "status_baseline"]
    if len(differences) < 2 and failed.size:
        statuses = ", ".join(dict.fromkeys(failed))
        reason = f"{name}: trainings of {baseline} failed ({statuses})"
        return Finding(NOT_TESTABLE, reason, None)
    if len(differences) < 2:
        point = float(differences.iloc[0]) if len(differences) else None
        return Finding(NOT_TESTABLE, f"{name}: fewer than two seeds that both were trained with: {MORE_SEEDS}", point)
    found = difference_over_seeds(differences.tolist())
    what = f"{form.claimed}, for {name} over {len(differences)} seeds"
    return judge(found.mean, found.low, found.high, -form.within, form.within, what, MORE_SEEDS)


def _largest(findings: list[Finding], verdict: str) -> Finding | None:
    """Of the findings with a verdict, the one with the largest difference."""
    own = [found for found in findings if found.verdict == verdict]
    return max(own, key=lambda found: abs(found.measured or 0), default=None)

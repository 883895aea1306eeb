"""Claims that a device or a precision leaves the trained model as good as it was."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from crossover.analysis.findings import DIFFERS, NOT_TESTABLE, REPRODUCED, Finding, judge
from crossover.analysis.selections import NothingToTestError, pinned
from crossover.analysis.summary import CONFIDENCE
from crossover.claim_forms import SameQuality
from crossover.records import BASELINE

REFERENCE = (BASELINE, "fp32")
"""Device and precision that all others are compared with."""


def check_quality(form: SameQuality, study: str, quality: pd.DataFrame | None) -> Finding:
    """Hold the differences of each device and precision to the CPU in fp32, paired by seed, against their limit.

    Every one must lie within it to be the same; the finding shows the one that decides. Raises NothingToTestError.
    """
    if quality is None or quality.empty or not (quality["study"] == study).any():
        raise NothingToTestError("no training of this study was rated for its quality")
    own = quality[quality["study"] == study]
    reference = _by_seed(own, form.metric, *REFERENCE)
    if reference.empty:
        raise NothingToTestError(f"no training on {' in '.join(REFERENCE)} to compare with")
    chosen = pinned(own, form.where)
    pairs = chosen[["device", "precision"]].drop_duplicates().itertuples(index=False, name=None)
    others = [(str(device), str(precision)) for device, precision in pairs if (device, precision) != REFERENCE]
    if "device" not in form.where and all(device == BASELINE for device, _ in others):
        raise NothingToTestError("only the CPU trained: run it on a machine that has a GPU")
    findings = [_compare(form, reference, _by_seed(own, form.metric, *pair), " in ".join(pair)) for pair in others]
    if not findings:
        raise NothingToTestError("no other device or precision was trained")
    worst = {verdict: _largest(findings, verdict) for verdict in (DIFFERS, NOT_TESTABLE, REPRODUCED)}
    return next(found for found in worst.values() if found is not None)


def _by_seed(quality: pd.DataFrame, metric: str, device: str, precision: str) -> pd.Series:
    rows = quality[(quality["device"] == device) & (quality["precision"] == precision)]
    return rows.set_index("seed")[metric].astype(float).dropna()


def _compare(form: SameQuality, reference: pd.Series, other: pd.Series, name: str) -> Finding:
    differences = (other - reference).dropna()
    what = f"{form.claimed} for {name} against {' in '.join(REFERENCE)}, over {len(differences)} seeds"
    if len(differences) < 2:
        point = float(differences.iloc[0]) if len(differences) else None
        return Finding(
            NOT_TESTABLE, f"{name} and {' in '.join(REFERENCE)} share fewer than two seeds: add seeds", point
        )
    mean = float(differences.mean())
    freedom = len(differences) - 1
    spread = float(stats.sem(differences)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return judge(mean, mean - spread, mean + spread, -form.within, form.within, what)


def _largest(findings: list[Finding], verdict: str) -> Finding | None:
    """Of the findings with a verdict, the one with the largest difference."""
    own = [found for found in findings if found.verdict == verdict]
    return max(own, key=lambda found: abs(found.measured or 0), default=None)

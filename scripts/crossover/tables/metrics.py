"""The metrics that a claim may name."""

from __future__ import annotations

import types
import typing

from crossover.config.claim_forms import DERIVED_METRICS
from crossover.config.words import AXES
from crossover.tables.columns import Measurement


def metrics() -> dict[str, bool]:
    """Every metric that a claim may name; True if a trial holds a list of values, whose mean counts."""
    metrics_of_trials = dict.fromkeys(DERIVED_METRICS, False)
    for name, hint in typing.get_type_hints(Measurement).items():
        kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
        if name not in (*AXES, "schema_version", "trial", "seed") and kinds & {int, float, list[float]}:
            metrics_of_trials[name] = list[float] in kinds
    return metrics_of_trials

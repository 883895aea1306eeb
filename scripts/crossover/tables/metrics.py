"""The metrics that a claim may name."""

from __future__ import annotations

import dataclasses
import types
import typing

from crossover.config.claim_forms import DERIVED_METRICS
from crossover.config.words import AXES
from crossover.tables.columns import Measurement
from crossover.tables.registry import CELLS, QUALITY_METRICS, WAYS

METRIC_TITLES = {
    **QUALITY_METRICS,
    **{way: f"latency ({words})" for way, words in WAYS.items()},
    "latency_p50_s": "median latency",
    "latency_p95_s": "95th percentile of the latency",
    "latency_p99_s": "99th percentile of the latency",
    "run_time_s": "time of a run",
    "first_step_s": "time of the first step",
    "device_time_s": "time per step on the device",
}
"""Titles of metrics that the table of cells does not show."""


def metrics() -> dict[str, bool]:
    """Every metric that a claim may name; True if a trial holds a list of values, whose mean counts."""
    found = dict.fromkeys(DERIVED_METRICS, False)
    for name, hint in typing.get_type_hints(Measurement).items():
        kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
        if name not in (*AXES, "schema_version", "trial", "seed") and kinds & {int, float, list[float]}:
            found[name] = list[float] in kinds
    return found


def metric_title(metric: str) -> str:
    """What a page calls a metric: its title, or else what its column holds."""
    if metric in METRIC_TITLES:
        return METRIC_TITLES[metric]
    if metric in CELLS:
        return CELLS[metric].title_of(metric)
    docs = {field.name: field.metadata["doc"] for field in dataclasses.fields(Measurement)}
    return str(docs[metric]).partition(";")[0]

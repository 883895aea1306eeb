"""What a claim measures, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral
from typing import Any

import pandas as pd

from crossover.config.claim_forms import Claim, CrossoverBetween, RatioWithin
from crossover.figures.style import PROTOCOL_WORDS, side_word, spaced
from crossover.statistics.quality import METRICS as QUALITY_WORDS
from crossover.tables.columns import Measurement
from crossover.tables.frames import of_study

COLUMN_DOCS = {column.name: column.metadata["doc"] for column in fields(Measurement)}

METRIC_WORDS = {
    "step_time_s": "time of a step",
    "run_time_s": "time of a run",
    "samples_per_s": "samples a second",
    "peak_allocated_bytes": "peak memory of tensors",
    "device_used_bytes": "memory in use on the device",
    "step_time_mean_s": "mean time of a step",
    "first_step_s": "time of the first step",
    "device_time_s": "time of a step on the device",
    "host_bound_share": "share of a step spent on the host alone",
    "energy_per_step_j": "energy of a step",
    "latency_p50_s": "median latency",
    "latency_p95_s": "95th percentile of the latency",
    "latency_p99_s": "99th percentile of the latency",
    "latencies_s": "latency",
    "latencies_cold_s": "latency without warm-up",
    "latencies_unsynchronised_s": "latency by an unsynchronised clock",
    "latencies_transfer_s": "latency with the transfer",
    "latencies_device_s": "latency between device events",
    "max_abs_error": "largest absolute error",
    "max_relative_error": "largest relative error",
}
"""Metrics as a reader says them; any other goes by what its column holds."""


def quantity(claim: Claim, x_axis: str | None) -> str:
    """What a claim measures; `x_axis` is what its study's crossovers are read over, None where that is not known."""
    form = claim.form
    if isinstance(form, CrossoverBetween):
        return _with(f"crossover in {x_axis}" if x_axis else "crossover", form.where)
    if isinstance(form, RatioWithin):
        return _ratio_words(form)
    metric = QUALITY_WORDS[form.metric]
    return _with(f"largest difference of {metric} from the CPU's in fp32, paired by seed", form.where)


def metric_words(metric: str) -> str:
    """What a metric is, in words, never its column's name."""
    return METRIC_WORDS.get(metric) or COLUMN_DOCS[metric].partition(";")[0]


def x_axis_words(crossovers: pd.DataFrame, study: str) -> str | None:
    """What a study's crossovers count: parameters, or what its sizes count."""
    lines = of_study(crossovers, study) if len(crossovers) else crossovers
    return None if lines.empty else line_unit(lines.iloc[0])


def x_axis_of(crossovers: pd.DataFrame, study: str) -> str | None:
    """What a study's crossovers are read over: size or parameters; None where nothing of it was measured."""
    lines = of_study(crossovers, study) if len(crossovers) else crossovers
    return None if lines.empty else str(lines["x_axis"].iloc[0])


def line_unit(line: pd.Series) -> str:
    """What the x axis of a crossover counts."""
    return "parameters" if line["x_axis"] == "parameters" else str(line["size_name"])


def _ratio_words(form: RatioWithin) -> str:
    """'time of a step, CPU over GPU (as published, size 2000)', or 'latency without warm-up over latency (GPU)'."""
    of, over = form.of.axes, form.over.axes
    shared = {axis: value for axis, value in of.items() if over.get(axis) == value}
    own, others = (
        ", ".join(_axis_words(axis, value) for axis, value in axes.items() if axis not in shared) for axes in (of, over)
    )
    first, second = (metric_words(side.metric) for side in (form.of, form.over))
    if first == second:
        return _with(f"{first}, {own} over {others}", shared)
    return _with(f"{first}{own and f' ({own})'} over {second}{others and f' ({others})'}", shared)


def _with(words: str, axes: Mapping[str, Any]) -> str:
    return f"{words} ({cell_words(axes)})" if axes else words


def cell_words(axes: Mapping[str, Any]) -> str:
    """Pinned axes as a reader says them: 'as published, GPU, size 2,000'; 'the only cell' without any."""
    return ", ".join(_axis_words(axis, value) for axis, value in axes.items()) or "the only cell"


def value_words(axis: str, value: Any) -> str:
    """The value of an axis: 'GPU', 'as published', '2,000', 'channels last'."""
    if axis == "device":
        return side_word(str(value))
    if axis == "protocol":
        return PROTOCOL_WORDS.get(str(value), spaced(str(value)))
    return f"{value:,}" if isinstance(value, Integral) else spaced(str(value))


def devices_apart(devices: Sequence[str]) -> list[str]:
    """What devices are called; those that share a word, such as two kinds of GPU, with the config's name behind it."""
    words = [side_word(device) for device in devices]
    return [
        f"{word} ({device})" if words.count(word) > 1 else word for word, device in zip(words, devices, strict=True)
    ]


def _axis_words(axis: str, value: Any) -> str:
    words = value_words(axis, value)
    return f"{axis.removesuffix('_size')} {words}" if axis in ("size", "batch_size") else words

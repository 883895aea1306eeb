"""Decide whether to use the GPU, from the thresholds.json of a Crossover run. Copy this file: it needs only the
standard library.

from thresholds import read_thresholds, should_use_gpu

thresholds = read_thresholds("thresholds.json")
wins = should_use_gpu(thresholds, "hsf_width", 2000, protocol="resident", default=False)
device = "cuda" if wins else "cpu"
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

VERSION = 4
GPU_AXES = ("device", "gpu")
AXES = ("machine", "variant", "protocol", "size", "batch_size", "precision", "execution", "cpu", *GPU_AXES)

Threshold = Mapping[str, Any]
"""A series of a study: its crossover, speed-ups, sizes at which a device is faster, caveats and hardware."""


def read_thresholds(path: str | PathLike[str]) -> list[Threshold]:
    """The thresholds in a file; raises ValueError for a file of another kind or version."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - strings are accepted as paths too
        content = json.load(file)
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ValueError(f"{path}: not thresholds of version {VERSION}; copy thresholds.py from the run's Crossover")
    return list(content["thresholds"])


def should_use_gpu(
    thresholds: Sequence[Threshold],
    study: str,
    x: float,
    /,
    *,
    default: bool | None = None,
    gpu_measured_elsewhere: bool = False,
    single_trial: bool = False,
    beyond_measured: bool = False,
    **axes: Any,
) -> bool | None:
    """Whether the GPU is faster at a size, number of parameters or batch size, whichever the study's crossover counts.

    Returns `default` where the run gives no answer. It gives one within the measured range and outside of the 95 %
    interval of the crossover, where the difference is significant and the GPU has a time. Three more answers need an
    argument: those of a GPU measured on another machine, those from a single trial (a device at least twice as fast),
    and, beyond the points measured, the answer at the nearest of them, unless the GPU was tried there and failed.

    `axes` select a series of the study, such as batch_size=512 or precision="fp32". Raises ValueError for an unknown
    study or axis, and if several series are left.
    """
    if not thresholds:
        raise ValueError(
            f"no thresholds are given: the run compared no devices over sizes; run Snakemake with study {study!r}, and "
            "read the thresholds.json beside its report"
        )
    of_study = [series for series in thresholds if series["study"] == study]
    if not of_study:
        raise ValueError(f"study {study!r} has no thresholds; allowed: {sorted({s['study'] for s in thresholds})}")
    if unknown := [axis for axis in axes if axis not in AXES]:
        raise ValueError(f"{unknown[0]!r} is not an axis of a series; allowed: {', '.join(AXES)}")
    picked = [series for series in of_study if all(_agrees(series, axis, value) for axis, value in axes.items())]
    if not picked:
        raise ValueError(f"no series of study {study!r} has {axes}; allowed: {_values(of_study, axes)}")
    with_gpu = [
        series
        for series in picked
        if series["device"] is not None and series["gpu_measured_elsewhere"] == gpu_measured_elsewhere
    ]
    if not with_gpu:
        return default
    if len(with_gpu) > 1:
        choices = {axis: values for axis, values in _values(with_gpu, AXES).items() if len(values) > 1}
        raise ValueError(f"{len(with_gpu)} series of study {study!r} have {axes}; name one value of {choices}")
    (series,) = with_gpu
    if series["single_trial"] and not single_trial:
        return default
    if beyond_measured and series["smallest"] is not None:
        if any(series["smallest"] > lost >= x or series["largest"] < lost <= x for lost in series["lost"]):
            return default
        x = min(max(x, series["smallest"]), series["largest"])
    for sizes in series["ranges"]:
        if sizes["from"] <= x <= sizes["until"]:
            return bool(sizes["faster"] == "gpu")
    return default


def _agrees(series: Threshold, axis: str, value: Any) -> bool:
    """Whether a series has the value; a series without a GPU matches any value, since its answer is the default."""
    return bool(series[axis] == value) or (axis in GPU_AXES and series["device"] is None)


def _values(thresholds: Sequence[Threshold], axes: Sequence[str] | Mapping[str, Any]) -> dict[str, list[str]]:
    return {axis: sorted({str(series[axis]) for series in thresholds}) for axis in axes}

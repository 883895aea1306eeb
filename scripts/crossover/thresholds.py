"""Decide whether to use the GPU, from the thresholds.json of a Crossover run.

To use this file in a program, copy it there; it needs only the standard library:

from thresholds import read_thresholds, should_use_gpu

thresholds = read_thresholds("thresholds.json")
wins = should_use_gpu(thresholds, "hsf_width", 2000, protocol="resident", default=False)
device = "cuda" if wins else "cpu"
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

VERSION = 4
GPU_AXES = ("device", "gpu")
WORD_AXES = ("protocol", "variant", "precision", "execution")
"""Axes on which a value that the study lacks raises an error; on the other axes, it gives the default."""
AXES = ("machine", "size", "batch_size", "cpu", *WORD_AXES, *GPU_AXES)
KEYS = {"study", *AXES, "gpu_measured_elsewhere", "single_trial", "smallest", "largest", "lost", "ranges"}

Threshold = Mapping[str, Any]
"""A series of a study: its crossover, speed-ups, the ranges in which a device is faster, caveats and hardware."""


def read_thresholds(path: str | PathLike[str]) -> list[Threshold]:
    """Read the thresholds of a run; raises ValueError for a damaged file, or one of another kind or version.

    Warns of thresholds with which `should_use_gpu` returns its default everywhere.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - strings are accepted as paths too
        try:
            content = json.load(file)
        except ValueError:
            raise ValueError(f"{path}: not JSON; copy thresholds.json from the results folder again") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ValueError(f"{path}: not thresholds of version {VERSION}; copy thresholds.py from the run's Crossover")
    thresholds = content.get("thresholds")
    if not isinstance(thresholds, list) or not all(isinstance(s, dict) and s.keys() >= KEYS for s in thresholds):
        raise ValueError(f"{path}: thresholds are incomplete; copy thresholds.json from the results folder again")
    if reason := _why_nothing_is_decided(thresholds):
        warnings.warn(f"{path}: should_use_gpu returns its default everywhere: {reason}", stacklevel=2)
    return thresholds


def _why_nothing_is_decided(thresholds: Sequence[Threshold]) -> str | None:
    """Why the thresholds give no answer without further options, and what to do; None if they give one."""
    with_gpu = [series for series in thresholds if series["device"] is not None]
    if not thresholds:
        return "the run compared no devices over sizes; measure a study with several sizes or batch sizes"
    if not with_gpu:
        return "no GPU was measured; run the study on a machine with one"
    if all(series["smallest"] is None for series in with_gpu):
        return "no size has a result of both GPU and CPU; run the study with devices=[cpu,cuda]"
    options = [
        [option for option in ("gpu_measured_elsewhere", "single_trial") if series[option]]
        for series in with_gpu
        if series["ranges"]
    ]
    if not options:
        return "no size has a significant difference; measure more trials or other sizes"
    if fewest := min(options, key=len):
        return f"it answers only with {' and '.join(f'{option}=True' for option in fewest)}"
    return None


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
    """Return True if the GPU is faster at `x`, False if the CPU is, and `default` where the run gives no answer.

    `x` is a value on the x axis of the study: a size, a number of parameters or a batch size. The run gives an answer
    where one device is significantly faster. The answer is for the hardware that was measured,
    whichever machine the program runs on; pass `gpu` or `cpu` to get the default for other hardware. Further answers:

    - with `gpu_measured_elsewhere`, for GPUs measured on another machine instead of this run's
    - with `single_trial`, from single trials, where a device was at least twice as fast
    - with `beyond_measured`, beyond the measured range: the answer at the nearest measured point, unless
      the GPU failed between that point and `x`

    `axes` select a series of the study, such as batch_size=512 or gpu="NVIDIA H200"; a size, batch size, machine or
    device that was not measured gives the default. Raises ValueError for an unknown study or axis, for a protocol,
    variant, precision or execution that the study does not have, and if several series with a GPU are left. Raises
    TypeError if `x` is not a number.
    """
    x = _number(x)
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
    for axis in WORD_AXES:
        if axis in axes and axes[axis] not in [series[axis] for series in of_study]:
            raise ValueError(
                f"no series of study {study!r} has {axis}={axes[axis]!r}; allowed: {_values(of_study, [axis])[axis]}"
            )
    picked = [series for series in of_study if all(_agrees(series, axis, value) for axis, value in axes.items())]
    with_gpu = [
        series
        for series in picked
        if series["device"] is not None and series["gpu_measured_elsewhere"] == gpu_measured_elsewhere
    ]
    if not with_gpu:
        return default
    if len(with_gpu) > 1:
        choices = [
            f"{axis} ({', '.join(values)})" for axis, values in _values(with_gpu, AXES).items() if len(values) > 1
        ]
        given = f" with {', '.join(f'{axis}={value!r}' for axis, value in axes.items())}" if axes else ""
        named = f"name one value of {', and of '.join(choices)}"
        raise ValueError(f"{len(with_gpu)} series of study {study!r}{given} have a GPU; {named}")
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


def _number(x: Any) -> float:
    if not isinstance(x, str | bytes):
        with suppress(TypeError, ValueError):
            return float(x)
    raise TypeError(f"x is {x!r}; allowed: a number, such as a size or a batch size")


def _agrees(series: Threshold, axis: str, value: Any) -> bool:
    """True if a series has this value; a series without a GPU matches every GPU, since its answer is the default."""
    return bool(series[axis] == value) or (axis in GPU_AXES and series["device"] is None)


def _values(thresholds: Sequence[Threshold], axes: Sequence[str]) -> dict[str, list[str]]:
    return {axis: sorted({str(series[axis]) for series in thresholds}) for axis in axes}

"""Whether to use the GPU, from the thresholds.json of a Crossover run. Copy this file: it needs Python alone.

from thresholds import read_thresholds, should_use_gpu

thresholds = read_thresholds("thresholds.json")
device = "cuda" if should_use_gpu(thresholds, "hsf_width", 2000, default=True) else "cpu"
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

VERSION = 1
AXES = ("machine", "variant", "protocol", "batch_size", "precision", "execution", "device", "gpu", "cpu")

Threshold = Mapping[str, Any]
"""A line of a study: from where on which device is faster, and what was measured on what."""


def read_thresholds(path: str | PathLike[str]) -> list[Threshold]:
    """The thresholds in a file; raises ValueError for a file of another kind or version."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a text will do for a path
        found = json.load(file)
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ValueError(f"{path}: not thresholds of version {VERSION}")
    return list(found["thresholds"])


def should_use_gpu(
    thresholds: Sequence[Threshold], study: str, size: float, *, default: bool | None = None, **axes: Any
) -> bool | None:
    """Whether the GPU is faster at a size, counted as the crossover is; `default` where that is not known.

    It is not known within the 95 % interval of the crossover (of a single trial, between the two sizes that bracket
    it), and where the devices were not told apart. Beyond the sizes that were measured, the answer is that at the
    nearest of them. `axes` pick a line of the study, as batch_size=512 or precision="fp32"; raises ValueError if they
    leave none, or several. A GPU that was measured elsewhere counts only with gpu_measured_elsewhere=True.
    """
    wanted = {"study": study, "gpu_measured_elsewhere": False, **axes}
    lines = [one for one in thresholds if all(one.get(axis) == value for axis, value in wanted.items())]
    if not lines:
        raise ValueError(f"no line has {wanted}; allowed: studies {sorted({str(one['study']) for one in thresholds})}")
    if len(lines) > 1:
        values = {axis: sorted({str(one[axis]) for one in lines}) for axis in AXES}
        choices = {axis: own for axis, own in values.items() if len(own) > 1}
        raise ValueError(f"{len(lines)} lines have {wanted}; allowed: one; name one of each of {choices}")
    (line,) = lines
    if line["smallest"] is None:
        return default
    size = min(max(size, line["smallest"]), line["largest"])
    if line["until"] is not None and size <= line["until"]:
        return bool(line["faster_below"] == "gpu")
    if line["from"] is not None and size >= line["from"]:
        return bool(line["faster_above"] == "gpu")
    return default

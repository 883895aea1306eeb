"""Bottleneck of a step, from the gain of each remedy tried and from the roofs of its device.

Remedies are tried one after the other (`crossover.measurement.remedies`), so their gains add up to the whole step. If
no CUDA graph was replayed, the GPU's idle time in the profile of a step on a batch held on the device is used in place
of the graph's gain: it is host work if a graph cannot capture the step, otherwise launch overhead, minus the host's
work between operators. The rest is the device's work, either explained by its measured bandwidth and peak or
unexplained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from crossover.config.words import LARGER_BATCH, is_cpu
from crossover.statistics.intervals import columns_of, paired_ratio, share_over_trials
from crossover.statistics.roofs import ROOF_TIMES, or_nan
from crossover.tables.frames import with_cell_columns
from crossover.tables.registry import BOTTLENECKS, CELL_AXES, SPLIT

NEAR = 1 / 3
"""Minimum share of a step's remaining work that a roof must explain to count as its cause."""

ALSO = 0.4
"""A second cause is reported if its share is at least LEAST of the step, and at least this fraction of the first's or
with an interval that overlaps the first's."""
LEAST = 0.2

PREDICTABLE = 0.1
"""Minimum share of a step that must remain for a prediction: after a long wait, a short remainder runs with cold
caches.
"""

OF_FIRST = ["device_busy_s", "device_work_s", "products_s", "others_s"]
"""Columns measured in the first trial only."""

PIN_ENOUGH = 1.05
"""Minimum gain for which pinned memory is the remedy for copies; otherwise the remedy is keeping the batch on the
device."""


class RoofTimes(NamedTuple):
    """The minimum time of a step's work on its device, in seconds; NaN if the device was not probed."""

    memory_s: float
    products_memory_s: float
    """The part of `memory_s` for matmuls, convolutions and attention."""
    compute_s: float
    launch_s: float
    """The launch of the step's kernels within one graph."""
    gaps_s: float
    """The gaps between the kernels of the graph."""


def with_bottlenecks(cells: pd.DataFrame, measurements: pd.DataFrame) -> pd.DataFrame:
    """Add the columns BOTTLENECKS to cells whose remedies were tried.

    `cells` has the columns of ROOF_TIMES; `measurements` has one row per trial.
    """
    is_tried = (measurements["status"] == "ok") & measurements[["split_step_s", "held_s"]].notna().all(axis=1)
    tried = measurements[is_tried].reindex(columns=[*CELL_AXES, *TIMES, "fits_graph", *OF_FIRST])
    roofs = {
        tuple(row[axis] for axis in CELL_AXES): RoofTimes(*(or_nan(row[name]) for name in ROOF_TIMES))
        for row in cells.to_dict("records")
    }
    rows = {}
    for key, rows_of_cell in tried.groupby(CELL_AXES, sort=False):
        trials = rows_of_cell.assign(**rows_of_cell[OF_FIRST].bfill().ffill())
        rows[key] = bottleneck_of(trials.to_dict("records"), roofs[key])
    return with_cell_columns(cells, rows, BOTTLENECKS)


def bottleneck_of(trials: Sequence[Mapping[Any, Any]], roofs: RoofTimes) -> dict[str, Any]:
    """The columns BOTTLENECKS of a cell, from its trials."""
    splits = [split_of(trial, roofs) for trial in trials]
    columns: dict[str, Any] = {"remedy_trials": len(trials)}
    shares = {name: share_over_trials([split[name] for split in splits]) for name in SPLIT}
    for name, share in shares.items():
        columns |= columns_of(share, name + "_share{}")
    order = sorted(SPLIT, key=lambda name: -shares[name].mean)
    first, second = order[:2]
    high, low = shares[second].high, shares[first].low
    overlaps = high is not None and low is not None and high > low
    has_second = shares[second].mean >= LEAST and (overlaps or shares[second].mean >= ALSO * shares[first].mean)
    columns |= {"bottleneck": first, "second_bottleneck": second if has_second else None}
    steps = [step for trial in trials if (step := remedy_of(first, trial, roofs))]
    if len(steps) == len(trials):
        remedy = min(steps, key=lambda step: step.after_s / step.before_s).name
        same = [step for trial in trials if (step := remedy_of(first, trial, roofs, remedy))]
        gain = paired_ratio([step.before_s for step in same], [step.after_s for step in same])
        least = 0 if remedy == "graph" else PREDICTABLE
        predicted = [step.before_s / step.predicted_s for step in same if step.predicted_s > least * step.before_s]
        columns |= {"remedy": remedy, **columns_of(gain, "gain{}")}
        columns["predicted_gain"] = paired_ratio(predicted, [1.0] * len(predicted)).mean if predicted else None
    return columns


def split_of(trial: Mapping[str, Any], roofs: RoofTimes) -> dict[str, float]:
    """The shares of a trial's step by cause; they add up to 1."""
    seconds = {name: or_nan(trial.get(name)) for name in TIMES}
    step_s = seconds["split_step_s"]
    prepared_s = _least(step_s, seconds["prepared_s" if seconds["prepared_s"] > 0 else "held_s"])
    held_s = _least(prepared_s, seconds["held_s"])
    # Loading costs at most its time measured alone; a larger difference is noise, which is large for a long step.
    loader_s = min(step_s - prepared_s, seconds["loading_s"])
    step_s = prepared_s + loader_s
    parts_s = dict.fromkeys(SPLIT, 0.0) | {"loader": loader_s, "transfer": prepared_s - held_s}
    if is_cpu(trial["device"]):
        work_s = _least(held_s, seconds["one_thread_s"], seconds["half_threads_s"])
        parts_s["threads"] = held_s - work_s
        parts_s["host"] = min(_or_0(seconds["host_work_s"]), work_s)
        parts_s["overhead"] = _overhead_s(work_s - parts_s["host"], parts_s["host"], held_s, trial, roofs)
        work_s -= parts_s["host"] + parts_s["overhead"]
    else:
        replayed = seconds["replayed_s"] > 0
        profiled_s = or_nan(trial.get("device_work_s"))
        device_s = profiled_s if profiled_s > 0 else _operators_s(trial)
        work_s = _least(held_s, seconds["replayed_s"] if replayed else device_s)
        idle_s = held_s - work_s
        cannot_be_graph = or_nan(trial.get("fits_graph")) == 0
        parts_s["host"] = idle_s if cannot_be_graph else min(_or_0(seconds["host_work_s"]), idle_s)
        parts_s["launch"] = idle_s - parts_s["host"]
        # A graph's time includes the gaps between its kernels, the profiler's does not.
        starting_s = min(roofs.launch_s if replayed else roofs.launch_s - roofs.gaps_s, work_s)
        if starting_s >= NEAR * work_s > 0:
            parts_s["launch"] += starting_s
            work_s -= starting_s
    for name, part_s in _device_work(work_s, trial, roofs).items():
        parts_s[name] += part_s
    return {name: value / step_s for name, value in parts_s.items()}


def _operators_s(trial: Mapping[str, Any]) -> float:
    """The sum of the times of an eager step's operators, timed one by one; 0 if they were not timed."""
    return _or_0(or_nan(trial.get("products_s"))) + _or_0(or_nan(trial.get("others_s")))


def _device_work(work_s: float, trial: Mapping[str, Any], roofs: RoofTimes) -> dict[str, float]:
    """Seconds of the device's work by the roof that explains them; products and other operators are judged apart."""
    products_s, others_s = _or_0(or_nan(trial.get("products_s"))), _or_0(or_nan(trial.get("others_s")))
    if not products_s + others_s:
        return {"unexplained": work_s}
    scale = work_s / (products_s + others_s)
    by_product = "compute" if _or_0(roofs.compute_s) >= _or_0(roofs.products_memory_s) else "memory"
    groups = (
        (by_product, products_s, max(_or_0(roofs.compute_s), _or_0(roofs.products_memory_s))),
        ("memory", others_s, _or_0(roofs.memory_s) - _or_0(roofs.products_memory_s)),
    )
    parts_s = dict.fromkeys(("memory", "compute", "unexplained"), 0.0)
    for name, group_s, roof_s in groups:
        is_near = group_s > 0 and roof_s >= NEAR * group_s * min(scale, 1.0)
        parts_s[name if is_near else "unexplained"] += group_s * scale
    return parts_s


class Remedy(NamedTuple):
    """The time of a step before a remedy, after it, and as predicted, in seconds for the same number of samples."""

    name: str
    before_s: float
    after_s: float
    predicted_s: float = math.nan


def remedy_of(cause: str, trial: Mapping[str, Any], roofs: RoofTimes, name: str | None = None) -> Remedy | None:
    """The best remedy for a cause that a trial tried, or the remedy `name`; None if it tried none."""
    tried = [step for step in _remedies(cause, trial, roofs) if step.after_s > 0 and name in (None, step.name)]
    return min(tried, key=lambda step: step.after_s / step.before_s, default=None)


def _remedies(cause: str, trial: Mapping[str, Any], roofs: RoofTimes) -> Iterator[Remedy]:
    seconds = {key: or_nan(trial.get(key)) for key in TIMES}
    step_s, held_s, prepared_s = seconds["split_step_s"], seconds["held_s"], seconds["prepared_s"]
    working_s = seconds["working_s"]
    copies_s = _or_0(seconds["transfer_s"])
    if cause == "loader":
        yield Remedy("prepare", step_s, prepared_s if prepared_s > 0 else held_s, working_s + copies_s)
    elif cause == "transfer":
        pinned_s = seconds["pinned_s"]
        if pinned_s > 0 and prepared_s >= PIN_ENOUGH * pinned_s:
            copying_s = _or_0(seconds["pinned_transfer_s"])  # the host runs ahead of these copies
            device_s = seconds["replayed_s"] if seconds["replayed_s"] > 0 else held_s
            yield Remedy("pin", prepared_s, pinned_s, max(held_s, copying_s + device_s))
        else:
            yield Remedy("hold", prepared_s, held_s, working_s)
    elif cause == "launch":
        host_s = _or_0(seconds["host_work_s"])
        if host_s < LEAST * held_s:  # a graph would skip host work that the step needs
            busy_s = _or_0(or_nan(trial.get("device_busy_s")))
            yield Remedy("graph", held_s, seconds["replayed_s"] + host_s, busy_s + _or_0(roofs.gaps_s) + host_s)
    elif cause == "threads":
        yield Remedy("one_thread", held_s, seconds["one_thread_s"])
        yield Remedy("half_threads", held_s, seconds["half_threads_s"])
    elif cause == "overhead":
        yield Remedy("larger_batch", LARGER_BATCH * held_s, seconds["larger_s"])


TIMES = (
    *("split_step_s", "loading_s", "transfer_s", "pinned_transfer_s", "prepared_s", "pinned_s", "held_s"),
    *("replayed_s", "host_work_s", "working_s", "one_thread_s", "half_threads_s", "larger_s"),
)


def _overhead_s(work_s: float, host_s: float, held_s: float, trial: Mapping[str, Any], roofs: RoofTimes) -> float:
    """The part of the operators' `work_s` that is call overhead.

    It is the part of a step that does not grow with the batch, less host work and the time to move its weights. If no
    larger batch was tried, it is the excess of an eager step over the sum of its operators, timed one by one.
    """
    larger_s = or_nan(trial.get("larger_s"))
    if larger_s > 0:
        fixed_s = (LARGER_BATCH * held_s - larger_s) / (LARGER_BATCH - 1)
        overhead_s = fixed_s - host_s - _or_0(roofs.memory_s)
    elif trial.get("execution") == "compile":  # a compiled step's operators differ from those counted in the eager step
        return 0.0
    else:
        operators_s = _operators_s(trial)
        overhead_s = work_s - operators_s if operators_s else 0.0
    return min(max(overhead_s, 0.0), work_s)


def _least(*seconds: float) -> float:
    return min(value for value in seconds if value > 0)


def _or_0(value: float) -> float:
    return 0.0 if math.isnan(value) else value

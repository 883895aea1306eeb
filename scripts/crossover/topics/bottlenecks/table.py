"""Bottleneck of a step, from the gain of each remedy and from the roofs of its device.

On an accelerator, the remedies build on each other (`crossover.measurement.remedies`), so the times that they save and
the remaining work of the device add up to the whole step. That work is attributed to launches, to memory or to compute,
or left unexplained.

If no CUDA graph was replayed, the time that it would save is estimated by the GPU's idle time in a step on a resident
batch. If a graph cannot capture the step, all idle time is host work. Otherwise the host's work between operators is
subtracted, and the rest is launch overhead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import geometric_mean
from typing import Any, NamedTuple

import pandas as pd

from crossover.compare.cells import rows_of_cells
from crossover.compare.intervals import columns_of, paired_ratio, share_over_trials
from crossover.config.statuses import DISTURBED
from crossover.config.words import LARGER_BATCH, is_cpu
from crossover.tables.frames import with_cell_columns
from crossover.tables.registry import BOTTLENECKS, CELL_AXES, SPLIT
from crossover.topics.bottlenecks.bounds import HIGHEST_TOLD, ROOF_TIMES, or_nan

NEAR = 1 / 3
"""Minimum share of the device's work that a roof must explain to count as the cause of that work."""

LEAST = 0.2
"""Minimum share of a step for a second cause to be reported, or for host work to exclude a CUDA graph as a remedy."""
ALSO = 0.4
"""Minimum share of a second cause relative to that of the first, unless the intervals of both shares overlap."""

CALLING = 2.0
"""Maximum time to call a CPU step's operators, relative to that by the `framework` roof. Eleven steps of tiny networks
took 0.1 to 1.4 times as long as by the roof on two busy cores, and an LSTM 1.8 times.
"""
FRESH = 0.1
"""Minimum share of the time of a CPU step that does not grow with the batch for memory's roof to explain that time. It
may be small, since memory that was just allocated is slow: a product written into it took 7 times as long (two cores).
"""

PREDICTABLE = 0.1
"""Minimum predicted time after a remedy, as a share of the time before, for a gain to be predicted. If a step
mostly waits, its short working part runs with cold caches, unlike after the remedy.
"""

TIMES = (
    *("split_step_s", "loading_s", "transfer_s", "pinned_transfer_s", "prepared_s", "pinned_s", "held_s"),
    *("replayed_s", "host_work_s", "working_s", "one_thread_s", "half_threads_s", "larger_s"),
)
OF_FIRST = ["device_busy_s", "device_work_s", "products_s", "others_s"]
"""Times that are measured in the first trial only."""

Seconds = Mapping[str, float]
"""TIMES and OF_FIRST of a trial; NaN for a time that was not measured."""

PIN_ENOUGH = 1.05
"""Minimum gain for pinned memory to be the remedy for transfers. Below it, the remedy is a batch held on the device."""


class RoofTimes(NamedTuple):
    """Minimum seconds of a step's work on its device; NaN if unknown."""

    memory_s: float
    products_memory_s: float
    """The part of `memory_s` for matmuls, convolutions and attention."""
    compute_s: float
    launch_s: float
    """Time of as many tiny kernels as the step has, launched as one CUDA graph; on a CPU, the time to call the
    step's operators by the `framework` roof.
    """
    gaps_s: float
    """The part of `launch_s` in which no kernel runs."""


def with_bottlenecks(cells: pd.DataFrame, measurements: pd.DataFrame) -> pd.DataFrame:
    """Add the columns BOTTLENECKS; they are empty for cells whose remedies were not tried.

    `cells` needs the columns ROOF_TIMES.
    """
    is_tried = (measurements["status"] == "ok") & measurements[["split_step_s", "held_s"]].notna().all(axis=1)
    tried = measurements[is_tried].reindex(columns=[*CELL_AXES, *TIMES, "fits_graph", *OF_FIRST, "flag_names"])
    roofs = {
        tuple(row[axis] for axis in CELL_AXES): RoofTimes(*(or_nan(row[name]) for name in ROOF_TIMES))
        for row in cells.assign(launch_roof_s=_limited_calls_s(cells)).to_dict("records")
    }
    for fill in ("bfill", "ffill"):
        tried[OF_FIRST] = getattr(tried.groupby(CELL_AXES, sort=False)[OF_FIRST], fill)()
    trials = tried.to_dict("records")
    rows = {}
    for positions in rows_of_cells(tried):
        key = tuple(trials[positions[0]][axis] for axis in CELL_AXES)
        rows[key] = bottleneck_of([trials[position] for position in positions], roofs[key])
    return with_cell_columns(cells, rows, BOTTLENECKS)


def _limited_calls_s(cells: pd.DataFrame) -> pd.Series:
    """`launch_roof_s`, on a CPU so that CALLING times it is at most the shortest step of the series, relative to it.

    Calls take as long at every size, and never longer than a step.
    """
    launch_s = cells["launch_roof_s"]
    series = [cells[axis] for axis in CELL_AXES if axis not in ("size", "batch_size")]
    least = (cells["step_time_s"] / launch_s).groupby(series, dropna=False).transform("min")
    is_limited = cells["device"].map(is_cpu).astype(bool) & (least < CALLING).fillna(False)
    return launch_s.mask(is_limited, launch_s * least / CALLING)


def bottleneck_of(trials: Sequence[Mapping[Any, Any]], roofs: RoofTimes) -> dict[str, Any]:
    splits = [split_of(trial, roofs) for trial in trials]
    flags = {flag for trial in trials for flag in trial.get("flag_names", ())}
    columns: dict[str, Any] = {"remedy_trials": len(trials), "remedy_flags": sorted(flags.intersection(DISTURBED))}
    shares = {name: share_over_trials([split[name] for split in splits]) for name in SPLIT}
    for name, share in shares.items():
        columns |= columns_of(share, name + "_share{}")
    order = sorted(SPLIT, key=lambda name: -shares[name].mean)
    first, second = order[:2]
    high, low = shares[second].high, shares[first].low
    overlaps = high is not None and low is not None and high > low
    has_second = shares[second].mean >= LEAST and (overlaps or shares[second].mean >= ALSO * shares[first].mean)
    columns |= {"bottleneck": first, "second_bottleneck": second if has_second else None}
    tried = [[step for step in _remedies(first, _seconds_of(trial), roofs) if step.after_s > 0] for trial in trials]
    if sum(map(bool, tried)) > len(tried) / 2:  # a single trial may take part of the step for work of the host
        remedy = min(chain(*tried), key=lambda step: step.after_s / step.before_s).name
        steps = [step for step in chain(*tried) if step.name == remedy]
        gain = paired_ratio([step.before_s for step in steps], [step.after_s for step in steps])
        least = 0 if remedy == "graph" else PREDICTABLE
        predicted = [step.before_s / step.predicted_s for step in steps if step.predicted_s > least * step.before_s]
        columns |= {"remedy": remedy, **columns_of(gain.exp_interval(), "gain{}")}
        columns["predicted_gain"] = geometric_mean(predicted) if predicted else None
    return columns


def is_hidden_by_load(cell: Mapping[str, Any]) -> bool:
    """Whether a cell's cause is worth nothing: under load, its remedy appears more than HIGHEST_TOLD times faster."""
    return bool(cell["remedy_flags"]) and (cell["gain"] or 0) > HIGHEST_TOLD


def _seconds_of(trial: Mapping[str, Any]) -> Seconds:
    return {name: or_nan(trial.get(name)) for name in (*TIMES, *OF_FIRST)}


def split_of(trial: Mapping[str, Any], roofs: RoofTimes) -> dict[str, float]:
    """The share of each cause in a trial's step; the shares add up to 1."""
    seconds = _seconds_of(trial)
    step_s = seconds["split_step_s"]
    prepared_s = _least(step_s, seconds["prepared_s" if seconds["prepared_s"] > 0 else "held_s"])
    held_s = _least(prepared_s, seconds["held_s"])
    # Loading takes no longer within a step than alone, so a larger difference is noise.
    loader_s = min(step_s - prepared_s, seconds["loading_s"])
    step_s = prepared_s + loader_s
    parts_s = dict.fromkeys(SPLIT, 0.0) | {"loader": loader_s, "transfer": prepared_s - held_s}
    if is_cpu(trial["device"]):
        work_s = _least(held_s, seconds["one_thread_s"], seconds["half_threads_s"])
        parts_s["threads"] = held_s - work_s
        parts_s["host"] = min(_or_0(seconds["host_work_s"]), work_s)
        is_compiled = trial.get("execution") == "compile"
        work_s -= parts_s["host"]
        fixed_s = (LARGER_BATCH * held_s - seconds["larger_s"]) / (LARGER_BATCH - 1) - parts_s["host"]
        parts_s["overhead"] = _overhead_s(work_s, fixed_s, seconds, roofs, is_compiled=is_compiled)
        work_s -= parts_s["overhead"]
        fixed_s = min(fixed_s - parts_s["overhead"] - parts_s["threads"], work_s)
        if fixed_s > 0 and roofs.memory_s >= FRESH * fixed_s and roofs.memory_s >= roofs.compute_s:
            parts_s["memory"] = fixed_s
            work_s -= fixed_s
    else:
        replayed = seconds["replayed_s"] > 0
        profiled_s = seconds["device_work_s"]
        device_s = profiled_s if profiled_s > 0 else _operators_s(seconds)
        work_s = _least(held_s, seconds["replayed_s"] if replayed else device_s)
        idle_s = held_s - work_s
        cannot_be_graph = or_nan(trial.get("fits_graph")) == 0
        parts_s["host"] = idle_s if cannot_be_graph else min(_or_0(seconds["host_work_s"]), idle_s)
        parts_s["launch"] = idle_s - parts_s["host"]
        # The time of a graph includes the gaps between its kernels; the profiler's time does not.
        launch_s = min(roofs.launch_s if replayed else roofs.launch_s - roofs.gaps_s, work_s)
        if launch_s >= NEAR * work_s > 0:
            parts_s["launch"] += launch_s
            work_s -= launch_s
    for name, part_s in _device_work(work_s, seconds, roofs).items():
        parts_s[name] += part_s
    return {name: value / step_s for name, value in parts_s.items()}


def _operators_s(seconds: Seconds) -> float:
    return _or_0(seconds["products_s"]) + _or_0(seconds["others_s"])


def _device_work(work_s: float, seconds: Seconds, roofs: RoofTimes) -> dict[str, float]:
    """Attribute the seconds of the device's work to roofs, separately for products and other operators."""
    operators_s, products_s, others_s = _operators_s(seconds), _or_0(seconds["products_s"]), _or_0(seconds["others_s"])
    if not operators_s:
        return {"unexplained": work_s}
    scale = work_s / operators_s
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
    """Seconds of a step before and after a remedy, and predicted seconds after it, for the same number of samples."""

    name: str
    before_s: float
    after_s: float
    predicted_s: float = math.nan


def _remedies(cause: str, seconds: Seconds, roofs: RoofTimes) -> Iterator[Remedy]:
    """`after_s` is NaN for a remedy that the trial did not try."""
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
        if host_s < LEAST * held_s:  # otherwise a graph would skip host work that the step needs
            busy_s = _or_0(seconds["device_busy_s"])
            yield Remedy("graph", held_s, seconds["replayed_s"] + host_s, busy_s + _or_0(roofs.gaps_s) + host_s)
    elif cause == "threads":
        yield Remedy("one_thread", held_s, seconds["one_thread_s"])
        yield Remedy("half_threads", held_s, seconds["half_threads_s"])
    elif cause == "overhead":
        yield Remedy("larger_batch", LARGER_BATCH * held_s, seconds["larger_s"])


def _overhead_s(work_s: float, fixed_s: float, seconds: Seconds, roofs: RoofTimes, *, is_compiled: bool) -> float:
    """The time of calling operators: the fixed part of a CPU step, minus the minimum time to move its bytes.

    `work_s` is the time of the step on the best number of threads, and `fixed_s` the part that does not grow with the
    batch (NaN if unknown), both without host work. Without `fixed_s`, it is what an eager step takes beyond its
    operators. Work on weights, gradients and the optimizer's state is part of `fixed_s`, so calling takes at most
    CALLING times `roofs.launch_s` or, if that is unknown, what an eager step takes beyond its operators.
    """
    operators_s = _operators_s(seconds)
    beyond_s = work_s - operators_s if operators_s and not is_compiled else math.nan
    overhead_s = _or_0(beyond_s) if math.isnan(fixed_s) else fixed_s - _or_0(roofs.memory_s)
    limit_s = beyond_s if math.isnan(roofs.launch_s) else CALLING * roofs.launch_s
    return max(0.0, min(work_s, overhead_s, work_s if math.isnan(limit_s) else limit_s))


def _least(*seconds: float) -> float:
    return min(value for value in seconds if value > 0)


def _or_0(value: float) -> float:
    return 0.0 if math.isnan(value) else value

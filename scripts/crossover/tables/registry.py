"""The columns of every derived table: description, unit, type, and display on the page.

The columns of trials and trainings are in `crossover.tables.columns`; docs/reference/columns.md is generated from both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from crossover.config.claim_forms import DERIVED_METRICS
from crossover.config.statuses import STATUSES
from crossover.config.words import AXES, LARGER_BATCH, PRECISIONS, X_AXES, series_axes
from crossover.tables.columns import Measurement, Row, Training, value_types
from crossover.text import spaced

CELL_AXES = list(AXES)
SERIES_AXES = series_axes("size")
SEARCH_AXES = [axis for axis in AXES if axis != "batch_size"]

COSTS = ("time", "energy", "money", "run")
"""The costs in which sides are compared: seconds, joules or money per step, and seconds per run, start-up included."""

CROSSOVER_STATUSES = {
    "bracketed": "the contender is behind at small sizes and ahead at large ones",
    "below_range": "the contender is ahead at every size measured on both sides",
    "above_range": "the contender is behind at every size measured on both sides",
    "edge_tie": "one side is ahead, but the difference at the smallest or largest size is not significant",
    "reversed": "the contender is ahead at small sizes and behind at large ones",
    "multiple": "the sides cross more than once, so there is no single answer",
    "undecided": "it is not clear which side is ahead, for example because no difference is significant",
    "incomplete": "a cell that could change the answer has no result, for example for lack of memory",
    "no_accelerator": "only the baseline was measured",
}

CAVEATS = {
    "no_common_size": "no size has a result on both sides",
    "lost_between": "at a size within the crossover's bracket, a side has no result (`caveat_at`)",
    "lost_beyond": "beyond the sizes measured on both sides, a size has a result on one side only; the sides might "
    "cross there (`caveat_at`)",
    "may_cross_again": "the sides may cross once more; more trials are needed to decide (`caveat_at`)",
    "may_cross_back": "the sides may cross and cross back; more trials are needed to decide (`caveat_at`)",
    "unsure_sizes": "no significant difference at some sizes (`caveat_at`)",
    "baseline_unknown": "the baseline has times but not this cost, for example for lack of a price",
    "contender_unknown": "the contender has times but not this cost, for example for lack of a price",
}

METHODS = {
    "latencies_s": "host clock, synchronised",
    "latencies_device_s": "device events",
    "latencies_transfer_s": "transfer in the loop",
    "latencies_cold_s": "no warm-up",
    "latencies_unsynchronised_s": "no synchronisation",
}
"""Methods to measure latency, by column of measurements; the first two are correct, the others are mistakes."""

QUALITY_METRICS = {"accuracy": "accuracy", "macro_f1": "macro-averaged F1", "weighted_f1": "weighted F1"}
"""Quality metrics of trained models; all are shares, higher is better."""


def claim_metrics() -> dict[str, bool]:
    """The metrics for claims about ratios, and whether a trial has a list of values, which counts as its mean."""
    types = {name: kind for name, kind in value_types(Measurement).items() if kind in ("int", "float", "list[float]")}
    excluded = {*AXES, "schema_version", "trial", "seed"}
    measured = {name: kind == "list[float]" for name, kind in types.items() if name not in excluded}
    return dict.fromkeys(DERIVED_METRICS, False) | measured


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of a value, in either direction."""

    absolute: float = 0
    """In the column's unit."""
    share: float = 0


COUNTS = ("parameters", "flops_per_step", "parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
ALLOCATOR_BLOCK = Tolerance(absolute=512)
"""PyTorch's CUDA allocator rounds each tensor up to a multiple of 512 B (kMinBlockSize of its caching allocator)."""
DEVICE_PAGE = Tolerance(absolute=2 * 1024**2)
"""Memory is taken from the device in pages of 2 MiB (granularity of CUDA's virtual memory management)."""
LARGEST_ERROR = Tolerance(share=0.25)
"""About two relative standard deviations of a largest error over random inputs. The relative standard deviation was
9 to 14 % over 20 matrix products of 256 rows and 20 of 1,024 rows, in fp32 and in bf16.
"""

DETERMINISTIC = {
    **dict.fromkeys(COUNTS, Tolerance()),
    **dict.fromkeys(("base_bytes", "peak_allocated_bytes"), ALLOCATOR_BLOCK),
    **dict.fromkeys(("peak_reserved_bytes", "device_used_bytes", "process_device_bytes"), DEVICE_PAGE),
    **dict.fromkeys(("relative_error", "gradient_error", "max_abs_error", "max_relative_error"), LARGEST_ERROR),
}

MEMORY_PARTS = {
    "parameter_bytes": "parameters",
    "gradient_bytes": "gradients",
    "optimizer_bytes": "optimizer state",
    "activation_bytes": "activations",
    "resident_bytes": "resident data",
    "other_bytes": "workspace and rest",
}
"""The parts of a memory peak, from bottom to top of a stacked bar."""


@dataclass(frozen=True)
class Column:
    """A column of a derived table."""

    doc: str
    unit: str = ""
    dtype: str = "Float64"
    """Pandas type; `object` for lists."""
    title: str = ""
    """Title on the page; if empty, the name."""
    shown_unit: str = ""
    factor: float = 1
    """Factor from the column's unit to `shown_unit`."""
    trials: str = ""
    """Statistic over a cell's trials, in words; empty if none is shown."""
    chart: Literal["", "seconds", "rate", "bytes", "number"] = ""
    """Format of the values in the chart; empty if the chart does not offer the column."""
    interval: tuple[str, str] | None = None
    """Names of the columns with the ends of the 95 % interval."""
    always: bool = False
    """True if the page shows the column even if all rows have the same value."""

    def title_of(self, name: str) -> str:
        """The title on the page of a column with this name."""
        return self.title or spaced(name)


def _text(doc: str, **more: Any) -> Column:
    return Column(doc, dtype="string", **more)


def _count(doc: str, unit: str = "", **more: Any) -> Column:
    return Column(doc, unit, dtype="Int64", **more)


def _yes(doc: str) -> Column:
    return Column(doc, dtype="boolean")


def _many(doc: str) -> Column:
    return Column(doc, dtype="object")


def _bytes(doc: str, shown_unit: str = "MB", factor: float = 1e-6, **more: Any) -> Column:
    return Column(doc, "B", shown_unit=shown_unit, factor=factor, **more)


def _ms(doc: str, **more: Any) -> Column:
    return Column(doc, "s", shown_unit="ms", factor=1e3, always=True, **more)


OVER_TRIALS = "end of the 95 % interval of `{}` over trials; empty with one trial"


def _estimate(name: str, doc: str, unit: str = "", ends: str = OVER_TRIALS, **more: Any) -> dict[str, Column]:
    """`name` has a placeholder for `_low` and `_high`, `ends` one for the name of the value's column."""
    value, low, high = (name.format(end) for end in ("", "_low", "_high"))
    return {
        value: Column(doc, unit, interval=(low, high), **more),
        low: Column(f"lower {ends.format(value)}", unit),
        high: Column(f"upper {ends.format(value)}", unit),
    }


def _percentile(percent: int, name: str, least: int) -> dict[str, Column]:
    doc = f"{name} of a trial's latencies, geometric mean over trials; empty if a trial has fewer than {least} steps"
    return _estimate(f"latency_p{percent}{{}}_s", doc, "s", ends="end of the 95 % interval; see `percentiles_over`")


def _of_record(names: Iterable[str], record: Any = Measurement) -> dict[str, Column]:
    fields = {field.name: field for field in dataclasses.fields(record)}
    dtypes = {"str": "string", "int": "Int64", "float": "Float64", "bool": "boolean"}
    types = value_types(record)
    return {name: Column(**fields[name].metadata, dtype=dtypes.get(types[name], "object")) for name in names}


def _axes(names: Iterable[str]) -> dict[str, Column]:
    shown = {"batch_size": {"title": "batch"}} | {name: {"always": True} for name in ("size", "study", "device")}
    return {name: replace(column, **shown.get(name, {})) for name, column in _of_record(names).items()}


MEAN = "geometric mean of the ok trials"
MEDIAN = "lower median of the ok trials"
MEDIAN_PEAK = "the trial with the median peak"

SUMMARIES = _axes(CELL_AXES) | {
    **_of_record(["size_name", "size_label", "batch_name", "parameters", "sample_name"]),
    "refined": _yes("whether refinement added the cell's point on the x axis"),
    "status": _text(
        "ok if all trials are ok, otherwise the status of the first trial that is not ok: "
        + ", ".join(STATUSES)
        + "; how a search ended, `oom` if not even one row fits",
        always=True,
    ),
    "reason": _text("reason for a status other than ok"),
    "step_time_s": _ms(
        "time of a step",
        title="time per step",
        trials=MEAN,
        chart="seconds",
        interval=("step_time_low_s", "step_time_high_s"),
    ),
    "step_time_low_s": _ms(f"lower {OVER_TRIALS}".format("step_time_s"), title="from"),
    "step_time_high_s": _ms(f"upper {OVER_TRIALS}".format("step_time_s"), title="to"),
    **_estimate(
        "samples_per_s{}", "samples per step divided by the step time", "1/s", title="samples per second", chart="rate"
    ),
    "flops_per_step": Column(
        "floating-point operations of a step",
        "FLOP",
        title="floating-point operations",
        shown_unit="GFLOP",
        factor=1e-9,
        trials="lower median of all trials",
    ),
    **_estimate(
        "achieved_tflops{}",
        "floating-point operations per second",
        "TFLOP/s",
        title="operations per second",
        shown_unit="TFLOP/s",
        chart="number",
    ),
    "peak_share": Column(
        "rate of floating-point operations over the highest rate of workload matmul on the same device in the same "
        "precision",
        title="of the peak rate",
        shown_unit="%",
        factor=100,
    ),
    **_estimate(
        "host_bound_share{}",
        "share of a step in which the device waits for the host; mean of the ok trials that measured it",
        ends="end of the 95 % interval of `{}` over trials, between 0 and 1; empty with one trial",
        title="host alone",
        shown_unit="%",
        factor=100,
        trials="mean of the ok trials",
    ),
    **_estimate(
        "energy_per_step{}_j",
        "energy of a step; geometric mean of the ok trials that measured it",
        "J",
        title="energy per step",
        shown_unit="J",
        trials=MEAN,
        chart="number",
    ),
    **_estimate(
        "price_per_million_steps{}",
        "price of a million steps, in the currency of the config's prices; empty without a price for the machine",
        trials=MEAN,
    ),
    "peak_allocated_bytes": _bytes("peak memory of tensors", title="peak memory of tensors", trials=MEDIAN),
    "device_used_bytes": _bytes(
        "memory in use on the whole device after the step",
        title="memory used on the device",
        trials=MEDIAN,
        chart="bytes",
    ),
    "rss_growth_bytes": _bytes(
        "peak resident memory of the process minus its resident memory before the step",
        title="growth of the process",
        trials=MEDIAN,
    ),
    "peak_bytes": _bytes(
        "memory of tensors at a step's peak; on the CPU, the sum of the parts or, without parts, `rss_growth_bytes`",
        title="memory of a step",
        trials=MEDIAN_PEAK,
        chart="bytes",
    ),
    **{name: _bytes(f"{words} at a step's peak", trials=MEDIAN_PEAK) for name, words in MEMORY_PARTS.items()},
    "capacity_bytes": _bytes("total memory of the GPU, or of the host for the CPU", shown_unit="GB", factor=1e-9),
    "bytes_per_step": _bytes(
        "minimum number of bytes moved by the operators of an eager step", trials="the first ok trial"
    ),
    "memory_roof_s": Column("minimum time to move a step's bytes, at the measured bandwidth", "s"),
    "products_memory_roof_s": Column("memory_roof_s for matmuls, convolutions and attention alone", "s"),
    "compute_roof_s": Column("minimum time of a step's operations, at the measured peak of the precision", "s"),
    "launch_roof_s": Column(
        "minimum time to launch a step's kernels within one CUDA graph, regardless of their size; on a CPU, the "
        "time to call the step's operators, from roof `framework`",
        "s",
    ),
    "gaps_s": Column("total time of the gaps between a step's kernels within one CUDA graph", "s"),
    **_estimate(
        "roof_share{}",
        "the longer of memory_roof_s and compute_roof_s, over the step time; empty without compute_roof_s",
        title="share of the roof reached",
        shown_unit="%",
        factor=100,
        chart="number",
    ),
    "max_abs_error": Column(
        "largest absolute error of a result's element, as defined by the workload's source",
        title="largest error",
        trials=MEDIAN,
        chart="number",
    ),
    "max_relative_error": Column(
        "largest relative error of a result's element, as defined by the workload's source",
        title="largest relative error",
        trials=MEDIAN,
        chart="number",
    ),
    "timed_steps": _count("smallest number of steps timed in an ok trial", trials="minimum of the ok trials"),
    "trials": _count("number of ok trials", always=True),
    "trials_not_ok": _count("number of trials with a status other than ok", title="trials not ok"),
    "flag_names": _many(
        "flags of the cell: those of more than a third of its ok trials, and those of all trials together, such as "
        "`trials_differ`"
    ),
    **_of_record(["device_name", "hostname", "threads"]),
}

RATIOS = _axes([*SERIES_AXES, "size"]) | {
    **_of_record(["parameters"]),
    "pair": _text(
        "kind of comparison: device, precision, execution, settings, protocol, machine, reference or bound; the axes "
        "are the contender's"
    ),
    "device": _text("the contender's device"),
    "baseline": _text("a CPU side, a baseline precision, execution or both, a protocol, or a machine"),
    "baseline_machine": _text("machine of the baseline"),
    "baseline_threads": _count("threads of the baseline, if it is a CPU"),
    "contender": _text("name of the contender; for pair `bound` the highest roof: launch, compute or memory"),
    **_estimate(
        "ratio{}",
        "time of the baseline over time of the contender; above 1 the contender is faster",
        ends="end of the 95 % interval of `{}` over trials, on its own; sentences are corrected for all comparisons of "
        "a study; empty with one trial",
    ),
    "deviation": Column(
        "standard deviation of ln(`ratio`) beyond that between trials, which the interval includes, if the contender's "
        "time is predicted for this CPU (pair `reference`)"
    ),
    "trials": _count("number of ok trials of the side with fewer"),
    "baseline_s": Column("step time of the baseline", "s"),
    "contender_s": Column("step time of the contender; for pair `bound` its minimum", "s"),
    "startup_s": Column(
        "start-up of the contender: context, build, and the excess of the first step over later ones; arithmetic mean "
        "of the ok trials, empty for references and comparisons of machines",
        "s",
    ),
    "baseline_startup_s": Column("start-up of the baseline, like `startup_s`", "s"),
    **_estimate(
        "payback_steps{}",
        "number of steps after which the side with the faster steps is ahead in total time, start-up included; 0 if "
        "that side is ahead from the first step on; empty without start-ups, or where the sides' crossover has no "
        "significant difference in step time",
        "steps",
        ends="end of the 95 % set of `{}`; empty if the set is open, or with one trial",
    ),
}

END_OF_SET = "end of the 95 % set of `{}`; empty if the set is open or not known"

CROSSOVERS = _axes([axis for axis in AXES if axis != "device"]) | {
    "pair": _text(
        "kind of comparison: device, precision, execution, machine, reference or best; the axis on which the sides "
        "differ has the contender's value; for best, `execution` is `best` and `precision` lists those compared"
    ),
    "cost": _text(
        "what is compared: "
        + ", ".join(COSTS[:-1])
        + " of a step, or `run`: the time of the study's whole run, start-up included; money needs prices in the "
        "config, `run` needs `steps_per_run`, and pair `best` has only time"
    ),
    "device": _text("the contender's device; for two precisions or executions, the device of both"),
    "baseline": _text("a CPU side, `fp32`, `eager`, or a machine"),
    "baseline_machine": _text("machine of the baseline; differs from `machine` if machines are compared"),
    "contender": _text("name of the contender; empty if the machine has no accelerator"),
    "x_axis": _text("x axis of the crossover: " + ", ".join(X_AXES) + "; the size or batch size is empty if it varies"),
    "second_axis": _yes("whether the x axis is the study's second axis"),
    "status": _text("how the search ended: " + ", ".join(CROSSOVER_STATUSES)),
    "caveat": _text("caveat about the crossover, or reason why none is given: " + ", ".join(CAVEATS)),
    "caveat_at": _many("points on the x axis that the caveat is about"),
    **_estimate("crossover{}", "the crossover on the x axis; empty if there is none", ends=END_OF_SET),
    "bracket_low": Column(
        "largest measured point on the x axis below the crossover; without intervals, the largest such point with a "
        "clear lead"
    ),
    "bracket_high": Column(
        "smallest measured point on the x axis above the crossover; without intervals, the smallest such point with a "
        "clear lead"
    ),
    "slower_up_to": Column(
        "largest measured point at which the contender is significantly slower, simultaneously over all points; empty "
        "without such a point, or without intervals"
    ),
    "faster_from": Column(
        "smallest measured point at which the contender is significantly faster, simultaneously over all points; empty "
        "without such a point, or without intervals"
    ),
    "sure_low": Column(
        "largest measured point below the crossover at which a side is significantly faster, simultaneously over all "
        "points; empty without a single crossover, or without intervals"
    ),
    "sure_high": Column("smallest such point above the crossover"),
    **_estimate("crossover_size{}", "the crossover as a size, interpolated", ends=END_OF_SET),
    **_estimate("crossover_parameters{}", "the crossover in parameters, interpolated", ends=END_OF_SET),
    "roots": _many("all points on the x axis at which the sides cross"),
    "trials": _count("smallest number of trials with this cost, over both sides and all points"),
    "host_share": Column("predicted for this CPU: the host's share of the contender's step at the crossover"),
    "host_slowdown": Column("predicted for this CPU: its time for a host's work over that of the contender's own host"),
    **_of_record(["size_name", "batch_name"]),
    "baseline_name": _text("name of the baseline's device"),
    "contender_name": _text("name of the contender's device"),
}

MACHINES = _axes(CELL_AXES) | {
    **_of_record(["device_name", "size_name", "size_label", "batch_name", "parameters"]),
    "measured_elsewhere": _yes(
        "whether the machine is a reference, whose intervals include the spread among hosts of its kind"
    ),
    "ranked_by": _text(
        "cost by which sides are ranked: time, or money if at least two sides of the series have a price"
    ),
    "cost_rank": _count("rank among the sides of the series at the point, lowest cost first"),
    "behind": _yes(
        "whether the side is significantly behind the first side; without intervals, whether its cost is at least "
        "twice as high, and more between hosts"
    ),
    "slower_than": _many("ranks of all sides that cost significantly less at the point, as a list"),
    **_estimate(
        "ratio{}",
        "the side's cost over the first side's",
        ends="end of the 95 % interval of `{}`, simultaneous over all pairs of sides and points of the series; empty "
        "with one trial, and for the first side",
    ),
    **{
        name: column
        for name, column in SUMMARIES.items()
        if name.startswith(("step_time", "energy_per_step", "price_per_million_steps"))
    },
    "steps": _count("number of steps of the study's run; empty, like columns `run_*`, for a study without a run"),
    **_estimate("run_time{}_s", "time of the run, without its start-up", "s"),
    **_estimate("run_energy{}_j", "energy of the run, if measured", "J"),
    **_estimate("run_price{}", "price of the run"),
    "trials": _count("number of ok trials"),
    "flag_names": _many("flags of the cell"),
}

ROOF_KINDS = {
    "matmul": "matrix product",
    "memory": "streaming through memory",
    "launch": "launching and running a tiny kernel",
    "framework": "training step of a tiny network on one core of the CPU: Python and torch's dispatch",
    "interpreter": "look-up of an attribute in Python",
    "graph_launch": "running a tiny kernel within a CUDA graph, gap included",
    "graph_gap": "gap between tiny kernels within a CUDA graph",
    "host_to_device_pageable": "copy to the device from pageable memory",
    "host_to_device_pinned": "copy to the device from pinned memory",
    "device_to_host_pageable": "copy from the device to pageable memory",
    "device_to_host_pinned": "copy from the device to pinned memory",
    "all_reduce": "sum of tensors of several GPUs, on each of them",
}

ROOFS = _of_record(["machine", "device", "device_name", "hostname", "threads", "torch_version"]) | {
    "roof": _text("what was probed: " + ", ".join(ROOF_KINDS)),
    "precision": _text("precision of a matrix product"),
    "working_set_bytes": Column("memory that the probe touches; empty for launches", "B"),
    "value": Column("best of the probe's repeats, of framework and interpreter their median, in `unit`"),
    "lowest": Column("lowest of the repeats"),
    "highest": Column("highest of the repeats"),
    "unit": _text("FLOP/s, B/s or s"),
    "disturbed": _text("what disturbed all attempts of the probe, in the words of `flag_names`; empty if nothing did"),
}

UNEXPLAINED = "unexplained"
SPLIT = {
    "loader": "preparing batches",
    "transfer": "copying batches to the device",
    "launch": "launching kernels",
    "host": "Python and other host work",
    "threads": "distributing work to threads",
    "overhead": "calling operators",
    "memory": "moving data through memory",
    "compute": "arithmetic",
    UNEXPLAINED: "unexplained work of the device",
}

REMEDIES = {
    "prepare": "batches prepared ahead",
    "pin": "batches in pinned memory",
    "hold": "data that stays on the device",
    "graph": "one CUDA graph",
    "one_thread": "one thread",
    "half_threads": "half of the threads",
    "larger_batch": f"{LARGER_BATCH} times the batch",
}

BOTTLENECKS = {
    "bottleneck": _text("part that takes the largest share of a step: " + ", ".join(SPLIT)),
    "second_bottleneck": _text(
        "part with the second-largest share; empty if its share is less than a fifth of the step, or if it is less "
        "than 0.4 times the bottleneck's share and the two intervals do not overlap"
    ),
    **{
        key: column
        for name, words in SPLIT.items()
        for key, column in _estimate(f"{name}_share{{}}", f"share of {words} in a step").items()
    },
    "remedy": _text("remedy tried against the bottleneck: " + ", ".join(REMEDIES) + "; empty if there is none"),
    **_estimate(
        "gain{}",
        "speed-up by the remedy, for the same number of samples, of a step without the parts that precede the "
        "bottleneck",
    ),
    "predicted_gain": Column(
        "speed-up predicted from the times of the parts; predictions above 10 are left out, except for a CUDA graph"
    ),
    "remedy_trials": _count("number of ok trials that tried remedies"),
    "remedy_flags": _many("flags of disturbances of at least one of these trials"),
}
"""Columns on the bottleneck of a cell; empty for cells whose remedies were not tried."""

CANDIDATES = {
    "in_play": _yes("whether the candidate is at most 10 % slower than its device's fastest candidate at the size"),
    "counts": _yes("whether all candidates in play at the size were measured, so that the size is used"),
    "chosen": _yes("whether the candidate is the fastest of its device at the size"),
    "chance": Column("probability that the candidate would be the fastest in new trials; empty without a time"),
    "selection_bias": Column(
        "share by which the fastest candidate appears too fast because it was selected; empty for other candidates"
    ),
}
"""Comparison of a candidate with the others of its device (any number of CPU cores); empty for other cells."""

SEARCHES = {
    "largest_batch": _count("largest batch that fitted every time it was tried; empty unless the status is ok"),
    "largest_fitting": _count("largest batch that fitted before the search was stopped; empty if it was not stopped"),
    "smallest_failing": _count("smallest batch that did not fit; empty if all tried batches fitted"),
    "throughput_samples_per_s": Column("samples per second at the largest batch; empty if not timed", "1/s"),
    "timed_batches": _count("number of batches timed for the throughput"),
    "timed_s": Column("total time of the batches timed for the throughput", "s"),
    "throughput_reason": _text("reason why a requested throughput is missing"),
    "search_start": _count("first batch size to try"),
    "search_limit": _count("largest batch size to try; empty without a limit"),
    "memory_limit_bytes": _count("memory limit of the search; empty without a limit", "B"),
    "tries_count": _count("number of tries of the search"),
    "search_s": Column("time of all tries", "s"),
    **_of_record(["driver_version", "cuda_version", "cpu_model", "torch_version", "command"]),
}
"""A search for the largest batch; empty for cells of other origins."""

ORIGINS = {
    "study": "a cell of the study's grid, which figures and answers are about",
    "candidates": "a cell that only the study's `candidates` add, so that devices are compared at their best",
    "reference": "a cell of a machine measured elsewhere that matches a cell of this machine",
    "predicted": "a cell of `reference` on an accelerator, with its times as predicted beside this CPU",
    "search": "a search for the largest batch of a cell, of which `batch_size` is empty",
}

CELLS = (
    {"origin": _text("; ".join(f"`{origin}`: {words}" for origin, words in ORIGINS.items()))}
    | SUMMARIES
    | BOTTLENECKS
    | CANDIDATES
    | SEARCHES
    | {"reference": _text("facts about the machine measured elsewhere, as JSON; empty for other rows")}
)

LATENCIES = _axes(CELL_AXES) | {
    "method": _text("column of measurements with the samples: " + ", ".join(METHODS)),
    "kind": _text("`right` or `mistake`"),
    "mean_s": Column("mean of the samples of all ok trials", "s"),
    "deviation_s": Column("standard deviation of the samples of all ok trials", "s"),
    "low_s": Column("minimum of the samples of all ok trials", "s"),
    "p5_s": Column("5th percentile of the samples of all ok trials", "s"),
    "q1_s": Column("lower quartile of the samples of all ok trials", "s"),
    "median_s": Column("median of the samples of all ok trials", "s"),
    "q3_s": Column("upper quartile of the samples of all ok trials", "s"),
    "p95_s": Column("95th percentile of the samples of all ok trials", "s"),
    "high_s": Column("maximum of the samples of all ok trials", "s"),
    **_percentile(50, "median", 6),
    **_percentile(95, "95th percentile", 72),
    **_percentile(99, "99th percentile", 368),
    "percentiles_over": _text(
        "basis of the intervals of the percentiles: `trials` (Student's t on logarithms), or with one trial `steps` "
        "(order statistics, which do not cover the spread among processes)"
    ),
    **_estimate(
        "ratio{}",
        "mean with a mistake over the mean of as many steps with the correct method, paired by trial; without warm-up, "
        "the first step over the median of the later half of those steps",
        ends="end of the 95 % interval of `{}`, simultaneous over the comparisons of the study",
    ),
    "is_error": _yes("whether the interval of `ratio` lies on the side of 1 to which the mistake shifts a latency"),
    "samples": _count("number of samples"),
    "trials": _count("number of ok trials with samples"),
}

SHARED_COLUMNS = [field.name for field in dataclasses.fields(Row)]
WHERE_AND_HOW = SHARED_COLUMNS[SHARED_COLUMNS.index("device_name") :]

QUALITY = _axes(CELL_AXES) | {
    **_of_record(["seed", "size_name", "size_label", "parameters", "epochs", "test_share"], Training),
    **_of_record(["generated_data", "status", "reason"], Training),
    "accuracy": Column("share of held-out rows predicted correctly; empty unless the status is ok"),
    "macro_f1": Column("mean of the classes' F1"),
    "weighted_f1": Column("mean of the classes' F1, weighted by the number of rows of each class"),
    **_of_record(["loss"], Training),
    "differing_share": Column(
        "share of held-out rows that the CPU's training in fp32 with the same seed predicts differently"
    ),
    "class_names": _many("names of the classes, as a list; the other columns `class_*` have one value per class"),
    "class_precision": _many("share of the rows predicted as a class that belong to it (precision)"),
    "class_recall": _many("share of a class's rows that are predicted as the class (recall)"),
    "class_f1": _many("harmonic mean of precision and recall (F1)"),
    "class_support": _many("number of held-out rows of a class"),
    "predicted_classes": _count("number of classes predicted at least once"),
    "seeds_compared": _count(
        f"number of seeds with ok trainings of both the cell and the CPU in {PRECISIONS[0]}; empty if there are none, "
        f"and for the CPU in {PRECISIONS[0]} itself"
    ),
    **{
        name: column
        for metric, words in QUALITY_METRICS.items()
        for name, column in _estimate(
            f"{metric}_difference{{}}",
            f"difference in {words} from the CPU in {PRECISIONS[0]}, mean over the compared seeds",
            ends="end of the 95 % interval of `{}` over seeds and rows, simultaneous over a study's cells",
        ).items()
    },
    **_of_record(["steps", "train_s", *WHERE_AND_HOW], Training),
}

CLAIMS = {
    "study": _text("study that the claim belongs to"),
    "machine": _text("machine whose measurements the claim is compared with"),
    "elsewhere": _text("of a reference: its accelerator and date; empty for machines of the run"),
    "statement": _text("the claimed statement"),
    "source": _text("author, title and date of the source; `ours` for our own statements"),
    "published": _text("the published value, or the tested range"),
    "measured": Column("the measured value; empty without the necessary data"),
    "measured_low": Column("lower end of the value's 95 % interval or known range; empty if there is none"),
    "measured_high": Column("upper end of the value's 95 % interval or known range; empty if there is none"),
    "form": _text("the form of the claim, a key in the study's file"),
    "metric": _text("the compared metric; empty for a crossover"),
    "over_metric": _text("for a ratio: the metric of the denominator, if different"),
    "side": _text("for a ratio: the side in the numerator, by the axes on which the sides differ"),
    "over": _text("for a ratio: the side in the denominator, by the axes on which the sides differ"),
    "condition": _text(
        "axis values to which the claim is limited; for a ratio, those common to both sides; empty for the whole study"
    ),
    "tested_low": Column("lower end of the tested range; empty if the form has none"),
    "tested_high": Column("upper end of the tested range; empty if the form has none"),
    "x_axis": _text("x axis of a crossover; empty for other forms, or without rows"),
    "unit": _text("unit of a crossover, such as parameters or the name of the size"),
    "verdict": _text("reproduced, compatible, differs, inconclusive, or no_data"),
    "reason": _text("reason for the verdict, one of `REASONS` in crossover.topics.claims.findings"),
    "place": _text("size, cell or value that the reason is about"),
    "caveats": _many("flags and caveats of the cells that the verdict rests on, the most important first"),
}

ANSWERS = {
    "study": _text("name of the study"),
    "machine": _text("machine that the answer is about; of two machines, the contender's"),
    "series": _text("the axes by which the answer's series differs from the study's others"),
    "kind": _text("kind of answer: one of `KINDS` in crossover.topics.answer"),
    "main": Column("whether the answer is one of the study's main answers", dtype="bool"),
    "status": _text("status of the answer: one of the `statuses` of its kind"),
    "device": _text("the device that the answer is about; empty if it compares devices"),
    "trials": _count("minimum number of ok trials, or seeds, that the answer is based on"),
    "corrected_for": _count("number of the study's comparisons, by which each of them is corrected"),
    "caveats": _many("flags and caveats, the most important first; the reference of statuses and flags explains each"),
    "sentence": _text("the answer in words, with its scope, its interval and its most important caveat"),
    "fields": _text("the numbers and sides of the answer as JSON; the class of its kind in crossover.topics has each"),
}

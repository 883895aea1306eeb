"""The columns of every derived table: description, unit, type, and display on the page.

The columns of one trial's row are in `crossover.tables.columns`. docs/reference is generated from both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from crossover.config.claim_forms import DERIVED_METRICS
from crossover.config.words import AXES, LARGER_BATCH, PRECISIONS, STATUSES, X_AXES, series_axes
from crossover.tables.columns import Measurement, Row, Training, value_types
from crossover.text import spaced

CELL_AXES = list(AXES)
"""The columns that identify a cell."""
SERIES_AXES = series_axes("size")
"""The columns that identify a series over the size; `series_axes` returns those for another x axis."""
SEARCH_AXES = [axis for axis in AXES if axis != "batch_size"]
"""The columns that identify a search for the largest batch."""

PAIRS = {
    "device": "an accelerator against a CPU side",
    "precision": "a precision against fp32, on one device",
    "execution": "an execution against eager, on one device",
    "settings": "a precision and execution against the study's baseline, on one device",
    "protocol": "data resident on the device against data from the host, on one device",
    "machine": "the same kind of device on two machines",
    "best": "an accelerator against the CPU, each with its fastest candidate at each size",
}
"""The kinds of comparison."""

COSTS = ("time", "energy", "money", "run")
"""Costs: seconds, joules or money per step, and seconds per whole run with its start-up."""

CROSSOVER_STATUSES = {
    "bracketed": "the contender falls behind the baseline on one side and is ahead on the other",
    "below_range": "the contender is ahead at every size measured on both sides",
    "above_range": "the contender is behind at every size measured on both sides",
    "edge_tie": "one side is ahead, but the difference at the smallest or largest size is not significant",
    "reversed": "the contender is ahead at small sizes and behind at large ones",
    "multiple": "the sides cross more than once: no single answer",
    "undecided": "no significant difference, so it is open which side is ahead",
    "incomplete": "a cell near the answer is missing, out of memory or timed out",
    "no_accelerator": "only the baseline was measured",
}
"""The outcomes of the search for a crossover."""

CAVEATS = {
    "no_common_size": "no size has a result on both sides",
    "lost_between": "a size within the crossover's bracket has no result on one side (`caveat_at`)",
    "lost_beyond": "beyond the sizes measured on both sides, a size has a result on one side only; the sides might "
    "cross there (`caveat_at`)",
    "may_cross_again": "the sides may cross once more; more trials are needed to decide (`caveat_at`)",
    "may_cross_back": "the sides may cross and cross back; more trials are needed to decide (`caveat_at`)",
    "unsure_sizes": "no significant difference at some sizes (`caveat_at`)",
    "baseline_unknown": "the baseline has times, but its energy was not measured or it has no price",
    "contender_unknown": "the contender has times, but its energy was not measured or it has no price",
}
"""Reasons why a crossover is uncertain, or cannot be given."""

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
    """All metrics that a claim may use; True if a trial has a list of values, of which the mean is used."""
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
    """Relative to the value."""


COUNTS = ("parameters", "flops_per_step", "parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")
ALLOCATOR_BLOCK = Tolerance(absolute=512)
"""PyTorch's CUDA allocator rounds each tensor up to 512 B (kMinBlockSize of its caching allocator)."""
DEVICE_PAGE = Tolerance(absolute=2 * 1024**2)
"""Memory is taken from the device in pages of 2 MiB (granularity of CUDA's virtual memory management)."""
LARGEST_ERROR = Tolerance(share=0.25)
"""Two relative standard deviations of a largest error over random inputs. In 20 products each of 256 and 1,024 rows, in
fp32 and bf16, the standard deviation was 9 to 14 %.
"""

DETERMINISTIC = {
    **dict.fromkeys(COUNTS, Tolerance()),
    **dict.fromkeys(("base_bytes", "peak_allocated_bytes"), ALLOCATOR_BLOCK),
    **dict.fromkeys(("peak_reserved_bytes", "device_used_bytes", "process_device_bytes"), DEVICE_PAGE),
    **dict.fromkeys(("relative_error", "gradient_error", "max_abs_error", "max_relative_error"), LARGEST_ERROR),
}
"""Deterministic columns, which only a cell's first trial records, with their tolerances."""

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
    """Unit on the page."""
    factor: float = 1
    """Factor from the column's unit to `shown_unit`."""
    trials: str = ""
    """Statistic over a cell's trials; empty for other values."""
    chart: Literal["", "seconds", "rate", "bytes", "number"] = ""
    """Format of the values in the chart; empty if the chart does not offer the column."""
    interval: tuple[str, str] | None = None
    """Names of the columns with the ends of its 95 % interval."""
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


OVER_TRIALS = "end of its 95 % interval over trials; empty with one trial"


def _estimate(name: str, doc: str, unit: str = "", ends: str = OVER_TRIALS, **more: Any) -> dict[str, Column]:
    """A value's column and those of its interval's ends; `name` has a placeholder for `_low` and `_high`."""
    low, high = name.format("_low"), name.format("_high")
    return {
        name.format(""): Column(doc, unit, interval=(low, high), **more),
        low: Column(f"lower {ends}", unit),
        high: Column(f"upper {ends}", unit),
    }


def _percentile(percent: int, name: str, least: int) -> dict[str, Column]:
    """The columns of a latency percentile and its interval."""
    doc = f"{name} of a trial's latencies, geometric mean over trials; empty if one has fewer than {least} steps"
    return _estimate(f"latency_p{percent}{{}}_s", doc, "s", ends="end of its 95 % interval; see `percentiles_over`")


def _of_record(names: Iterable[str], record: Any = Measurement) -> dict[str, Column]:
    """Columns copied from a trial's or a training's row."""
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
    **_of_record(["size_name", "size_label", "parameters", "sample_name"]),
    "refined": _yes("whether refinement added the cell to the study's points on the x axis"),
    "status": _text("how the cell ended: " + ", ".join(STATUSES), always=True),
    "reason": _text("reason, if the status is not ok"),
    "step_time_s": _ms(
        "time of a step",
        title="time per step",
        trials=MEAN,
        chart="seconds",
        interval=("step_time_low_s", "step_time_high_s"),
    ),
    "step_time_low_s": _ms("lower end of its 95 % interval over trials; empty with one trial", title="from"),
    "step_time_high_s": _ms("upper end of its 95 % interval over trials; empty with one trial", title="to"),
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
        "achieved TFLOP/s over the highest rate of workload matmul on the device in the precision",
        title="of the peak rate",
        shown_unit="%",
        factor=100,
    ),
    **_estimate(
        "host_bound_share{}",
        "share of a step in which the device waits for the host; mean of the ok trials that measured it",
        ends="end of its 95 % interval over trials, within 0 and 1",
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
        "peak resident memory of the process less that before the step",
        title="growth of the process",
        trials=MEDIAN,
    ),
    "peak_bytes": _bytes(
        "memory of tensors at a step's peak; on the CPU the sum of the parts, or without them the growth of the "
        "process",
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
        "minimum time to start a step's kernels within one CUDA graph, regardless of their size", "s"
    ),
    "gaps_s": Column("total gap between a step's kernels within one CUDA graph", "s"),
    **_estimate(
        "roof_share{}",
        "the longer of memory_roof_s and compute_roof_s, over the step time",
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
    "trials_not_ok": _count("number of other trials", title="trials not ok"),
    "flags": _many("all flags of its trials, and `trials_differ`"),
    **_of_record(["device_name", "hostname", "threads"]),
}
"""Summaries of a cell's trials, with the columns that the page shows."""

RATIOS = _axes([*SERIES_AXES, "size"]) | {
    **_of_record(["parameters"]),
    "pair": _text(
        "kind of comparison: device, settings, protocol, machine; for `reference`, a device of a machine measured "
        "elsewhere against one of this machine; for `bound`, the minimum time that the roofs of such a device allow "
        "against the time on this machine; the axes are the contender's"
    ),
    "device": _text("the contender's device"),
    "baseline": _text(
        "baseline: a CPU side, the plain settings, a protocol with data from the host, or the first machine"
    ),
    "baseline_machine": _text("machine of the baseline"),
    "baseline_threads": _count("threads of the baseline"),
    "contender": _text("contender; for pair `bound` the highest roof: launch of one kernel, compute, memory"),
    **_estimate("ratio{}", "time of the baseline over time of the contender; above 1 the contender is faster"),
    "trials": _count("number of ok trials of the side with fewer"),
    "baseline_s": Column("step time of the baseline", "s"),
    "contender_s": Column("step time of the contender", "s"),
    "startup_s": Column(
        "start-up of the contender: context, build, and the excess of the first step over a later one; arithmetic "
        "mean of the ok trials; empty, like the next columns, for references and comparisons of machines",
        "s",
    ),
    "baseline_startup_s": Column("start-up of the baseline", "s"),
    **_estimate(
        "payback_steps{}",
        "number of steps after which the side with the faster steps is ahead in total time, start-up included; 0 from "
        "the first step on; empty without a significant difference in step time",
        "steps",
        ends="end of its 95 % set; empty: open, or with one trial",
    ),
}

END_OF_SET = "end of its 95 % set; empty: open, or no interval is given"

CROSSOVERS = _axes([axis for axis in AXES if axis != "device"]) | {
    "pair": _text(
        "kind of comparison: device, precision, execution, machine, whose column has the contender's value; or `best`: "
        "`execution` is best, `precision` the accuracy class, and `variant` best if there are several; or `reference`: "
        "the GPU of a machine measured elsewhere against this machine's CPU"
    ),
    "cost": _text(
        "what is compared: "
        + ", ".join(COSTS[:-1])
        + " of a step, or the time of the study's whole `run`, start-up included; money only if the config has prices, "
        "run only if the study has its number of steps; only time for `best`"
    ),
    "device": _text("the contender's device; for two precisions or executions, the device of both"),
    "baseline": _text("baseline: a CPU side, `fp32`, `eager`, or the first machine"),
    "baseline_machine": _text("machine of the baseline; not `machine` if machines are compared"),
    "contender": _text("contender; empty if the machine has no accelerator"),
    "x_axis": _text("x axis of the crossover, whose own column is empty: " + ", ".join(X_AXES)),
    "second_axis": _yes("whether the x axis is the second axis of a study with several sizes and batch sizes"),
    "status": _text("how the search ended: " + ", ".join(CROSSOVER_STATUSES)),
    "caveat": _text("caveat about the crossover, or reason why none is given: " + ", ".join(CAVEATS)),
    "caveat_at": _many("points on the x axis that the caveat is about"),
    **_estimate("crossover{}", "the crossover on the x axis; empty if there is none", ends=END_OF_SET),
    "bracket_low": Column(
        "largest measured point on the x axis before the sign changes; with one trial, before the lead is too small"
    ),
    "bracket_high": Column("smallest measured point after the crossover"),
    "slower_up_to": Column(
        "largest measured point at which the contender is significantly slower, simultaneously over all points; empty "
        "without such a point, or with one trial"
    ),
    "faster_from": Column("smallest measured point at which the contender is significantly faster"),
    **_estimate("crossover_size{}", "the crossover as a size, interpolated", ends=END_OF_SET),
    **_estimate("crossover_parameters{}", "the crossover in trainable parameters, interpolated", ends=END_OF_SET),
    "roots": _many("all points on the x axis where the sides cross"),
    "trials": _count(
        "smallest number of ok trials at a point in which the cost was measured; with one, the crossover is indicative"
    ),
    "size_name": _text("what the size axis counts"),
    "baseline_name": _text("name of the baseline's device"),
    "contender_name": _text("name of the contender's device"),
}

MACHINES = _axes(CELL_AXES) | {
    **_of_record(["device_name", "size_name", "size_label", "parameters"]),
    "measured_elsewhere": _yes(
        "whether the machine is a reference, whose interval includes the spread among hosts of its kind"
    ),
    "ranked_by": _text(
        "cost by which sides are ranked: time, or money if at least two sides of the series have a price"
    ),
    "rank": _count("rank among the sides of the series at the point, lowest cost first"),
    "behind": _yes(
        "whether the side is significantly behind the first; with one trial, whether its cost is at least twice as high"
    ),
    **_estimate(
        "ratio{}",
        "the side's cost over the first side's",
        ends="end of its 95 % interval, simultaneous with those of the other sides; empty with one trial, and for the "
        "first side",
    ),
    **{
        name: column
        for name, column in SUMMARIES.items()
        if name.startswith(("step_time", "energy_per_step", "price_per_million_steps"))
    },
    "steps": _count("number of steps of the study's run; empty, like the next columns, for a study without a run"),
    **_estimate("run_time{}_s", "time of the run, without its start-up", "s"),
    **_estimate("run_energy{}_j", "energy of the run, if measured", "J"),
    **_estimate("run_price{}", "price of the run"),
    "trials": _count("number of ok trials"),
    "flags": _many("flags of its cell"),
}

ROOF_KINDS = {
    "matmul": "matrix product",
    "memory": "streaming through memory",
    "launch": "starting a tiny kernel",
    "graph_launch": "starting a tiny kernel within a CUDA graph",
    "graph_gap": "gap between tiny kernels within a CUDA graph",
    "host_to_device_pageable": "copy to the device from pageable memory",
    "host_to_device_pinned": "copy to the device from pinned memory",
    "device_to_host_pageable": "copy from the device to pageable memory",
    "device_to_host_pinned": "copy from the device to pinned memory",
}
"""The roofs that are probed on a device."""

ROOFS = _of_record(["machine", "device", "device_name", "hostname", "threads", "torch_version"]) | {
    "roof": _text("what was probed: " + ", ".join(ROOF_KINDS)),
    "precision": _text("precision of a matrix product"),
    "working_set_bytes": Column("memory that the probe touches", "B"),
    "value": Column("median of the probe's repeats, in `unit`"),
    "lowest": Column("lowest of the repeats"),
    "highest": Column("highest of the repeats"),
    "unit": _text("FLOP/s, B/s or s"),
}

SPLIT = {
    "loader": "preparing batches",
    "transfer": "copying batches to the device",
    "launch": "starting kernels",
    "host": "Python and other host work",
    "threads": "distributing work to threads",
    "overhead": "calling operators",
    "memory": "moving data through memory",
    "compute": "arithmetic",
    "unexplained": "unexplained work of the device",
}
"""The parts of a step's time."""

REMEDIES = {
    "prepare": "batches prepared ahead",
    "pin": "batches in pinned memory",
    "hold": "data that stays on the device",
    "graph": "one CUDA graph",
    "one_thread": "one thread",
    "half_threads": "half of the threads",
    "larger_batch": f"{LARGER_BATCH} times the batch",
}
"""The remedies tried against a bottleneck."""

BOTTLENECKS = {
    "bottleneck": _text("part that takes the largest share of a step: " + ", ".join(SPLIT)),
    "second_bottleneck": _text(
        "another part that takes at least a fifth of the step, and at least 0.4 times as much as the bottleneck or "
        "with an overlapping interval; empty if there is none"
    ),
    **{
        key: column
        for name, words in SPLIT.items()
        for key, column in _estimate(f"{name}_share{{}}", f"share of {words} in a step").items()
    },
    "remedy": _text("remedy tried against the bottleneck: " + ", ".join(REMEDIES) + "; empty if there is none"),
    **_estimate("gain{}", "speed-up by the remedy for the same samples, of the step without the preceding parts"),
    "predicted_gain": Column("speed-up predicted from the times of the parts; empty above 10"),
    "remedy_trials": _count("number of ok trials that tried remedies"),
}
"""The bottleneck of a cell whose remedies were tried; empty for other cells."""

CANDIDATES = {
    "in_play": _yes("whether the candidate is the fastest of its device at the size, or nearly so"),
    "counts": _yes("whether all candidates in play at the size were measured, so that the size is used"),
    "chosen": _yes("whether the candidate is the fastest of its device at the size"),
    "chance": Column("probability that it would be the fastest in new trials; empty without a time"),
    "selection_bias": Column(
        "share by which the fastest candidate appears too fast because it was selected; empty for the others"
    ),
}
"""Comparison of a candidate cell with its device's other candidates (for a CPU, on any number of cores); empty for
other cells."""

ORIGINS = {
    "study": "a cell of the study's grid, which figures and answers are about",
    "candidates": "a cell that only the study's `candidates` add, so that devices are compared at their best",
    "reference": "a cell of a machine measured elsewhere that matches a cell of this machine",
}
"""Origins of rows in `cells`."""

CELLS = (
    {"origin": _text("; ".join(f"`{origin}`: {words}" for origin, words in ORIGINS.items()))}
    | SUMMARIES
    | BOTTLENECKS
    | CANDIDATES
    | {"reference": _text("facts about the machine measured elsewhere, as JSON; empty for other rows")}
)

LATENCIES = _axes(CELL_AXES) | {
    "method": _text("column of measurements with the samples: " + ", ".join(METHODS)),
    "kind": _text("`right` or `mistake`"),
    "mean_s": Column("mean of the samples of all ok trials", "s"),
    "deviation_s": Column("standard deviation of these samples", "s"),
    "low_s": Column("minimum of these samples", "s"),
    "p5_s": Column("5th percentile of these samples", "s"),
    "q1_s": Column("lower quartile of these samples", "s"),
    "median_s": Column("median of these samples", "s"),
    "q3_s": Column("upper quartile of these samples", "s"),
    "p95_s": Column("95th percentile of these samples", "s"),
    "high_s": Column("maximum of these samples", "s"),
    **_percentile(50, "median", 6),
    **_percentile(95, "95th percentile", 72),
    **_percentile(99, "99th percentile", 368),
    "percentiles_over": _text(
        "basis of these three intervals: `trials` (Student's t on logarithms), or with one trial its `steps` (order "
        "statistics), which do not cover the spread among processes"
    ),
    **_estimate(
        "ratio{}",
        "for a mistake: its mean over that of the correct method, paired by trial; for the first steps, over later "
        "steps",
        ends="end of its 95 % interval, simultaneous over a study's mistakes on a machine",
    ),
    "is_error": _yes("whether the interval shows that the mistake biases the mean in the expected direction"),
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
    "weighted_f1": Column("mean of the classes' F1, weighted by their number of rows"),
    **_of_record(["loss"], Training),
    "differing_share": Column("share of held-out rows that the CPU's training in fp32 predicts differently"),
    "class_names": _many("names of the classes, as a list; the next four columns have one value per class"),
    "class_precision": _many("share of the rows predicted as a class that belong to it (precision)"),
    "class_recall": _many("share of a class's rows that are predicted as the class (recall)"),
    "class_f1": _many("harmonic mean of precision and recall (F1)"),
    "class_support": _many("number of held-out rows of a class"),
    "predicted_classes": _count("number of classes predicted at least once"),
    "seeds_compared": _count(
        f"number of seeds that ended ok both for the cell and for the CPU in {PRECISIONS[0]}; empty for the latter, or "
        "if there are none"
    ),
    **{
        name: column
        for metric, words in QUALITY_METRICS.items()
        for name, column in _estimate(
            f"{metric}_difference{{}}",
            f"mean over these seeds of the difference in {words} from the CPU in {PRECISIONS[0]} with the same seed",
            ends="end of its 95 % interval over seeds and rows, simultaneous over a study's cells",
        ).items()
    },
    **_of_record(["steps", "train_s", *WHERE_AND_HOW], Training),
}

LARGEST_BATCHES = _axes(SEARCH_AXES) | {
    "status": _text("how the search ended: ok, oom (not even one row fits), timeout, invalid, unsupported"),
    "reason": _text("reason, if the status is not ok"),
    "largest": _count("largest batch that fitted every time it was tried; empty unless the status is ok"),
    "largest_fitting": _count("largest batch that fitted before the search was stopped; empty if it was not stopped"),
    "smallest_failing": _count("smallest batch that did not fit; empty if all tried batches fitted"),
    "throughput_samples_per_s": Column("samples per second at the largest batch; empty if not timed", "1/s"),
    "timed_batches": _count("number of batches timed for the throughput"),
    "timed_s": Column("time of these batches", "s"),
    "throughput_reason": _text("reason why a requested throughput is missing"),
    "start": _count("first batch size to try"),
    "limit": _count("largest batch size to try; empty without a limit"),
    "memory_limit_bytes": _count("memory limit of the cell; empty without a limit", "B"),
    "tries_count": _count("number of tries of the search"),
    "search_s": Column("time of all tries", "s"),
    **_of_record(["device_name", "driver_version", "cuda_version", "hostname", "cpu_model", "threads"]),
    **_of_record(["torch_version", "command"]),
}

CLAIMS = {
    "study": _text("study that the claim belongs to"),
    "machine": _text("machine whose measurements the claim is compared with"),
    "statement": _text("the claimed statement"),
    "source": _text("author, title and date of the source; `ours` for our own statements"),
    "published": _text("the published value, or the tested range"),
    "measured": Column("the measured value; empty without the necessary data"),
    "measured_low": Column("lower end of its 95 % interval or known range; empty if there is none"),
    "measured_high": Column("upper end of its 95 % interval or known range; empty if there is none"),
    "form": _text("the form of the claim in the study's file"),
    "metric": _text("the metric: a column of measurements or quality; empty for a crossover"),
    "over_metric": _text("for a ratio: the metric of the divisor, if different"),
    "side": _text("for a ratio: the side that is divided"),
    "over": _text("for a ratio: the side by which it is divided"),
    "where": _text(
        "axis values common to both sides, or for a crossover or a quality the part of the study; empty for the whole "
        "study"
    ),
    "tested_low": Column("lower end of the tested range; empty if the form has none"),
    "tested_high": Column("upper end of the tested range; empty if the form has none"),
    "x_axis": _text("x axis of a crossover; empty for other forms, or without rows"),
    "unit": _text("unit of a crossover: parameters, or the name of the size"),
    "verdict": _text("reproduced, compatible, differs, inconclusive, or no_data"),
    "reason": _text("reason for the verdict, one of `REASONS` in crossover.claims.findings"),
    "place": _text("size, cell or value that the reason is about"),
}

ANSWERS = {
    "study": _text("name of the study"),
    "machine": _text("machine that the answer is about"),
    "series": _text(
        "the study's series that the answer is about, by their distinguishing axes; for a claim, its statement"
    ),
    "kind": _text("kind of answer: one of `KINDS` in crossover.answers.vocabulary"),
    "main": Column("whether the answer is about the study's question; other answers are secondary", dtype="bool"),
    "status": _text("how the search for the answer ended"),
    "value": Column("value of the answer, in `unit`"),
    "low": Column("lower end of its 95 % interval; empty: open, or no interval"),
    "high": Column("upper end of its 95 % interval; empty: open, or no interval"),
    "unit": _text("unit of the value"),
    "winner": _text("the side that is ahead; the contender if neither is"),
    "loser": _text("the other side"),
    "winner_configurations": _many(
        "for devices at their best: the fastest configurations of the side ahead, next to the crossover or at both "
        "ends; for a ranking: the sides in first place, from left to right along the x axis"
    ),
    "loser_configurations": _many("for devices at their best: the fastest configurations of the side behind"),
    "moved_status": _text("how the search for the crossover of the plain candidates ended"),
    "moved_from": Column("the crossover of the plain candidates"),
    "factor": Column(
        "crossover of devices at their best over that of the plain candidates; for a machine measured elsewhere, time "
        "of this machine's CPU over that machine's CPU, geometric mean over the sizes of small steps; empty unless "
        "both are known"
    ),
    "device": _text("the device that the answer is about"),
    "cost": _text("cost by which sides are compared: " + ", ".join(COSTS)),
    "place": _text("the cell with the value, by its distinguishing axes"),
    "bracket_low": Column("largest measured size before a crossover"),
    "bracket_high": Column("smallest measured size after a crossover"),
    "smallest": Column("smallest point on the x axis with a time on both sides"),
    "largest": Column("largest point on the x axis with a time on both sides"),
    "reach": Column(
        "if one side is faster at all sizes: the end of the measured range beyond which the sides may cross; with a "
        "tie at this end, the size next to all ties"
    ),
    "ratio_low": Column("if one side is faster at all sizes: its minimum speed-up"),
    "ratio_high": Column("if one side is faster at all sizes: its maximum speed-up"),
    "near": _many(
        "sizes that the status or a caveat is about; for a ranking, the first and last size at which the sides in "
        "first place lead"
    ),
    "winner_s": Column("step time of the side ahead", "s"),
    "loser_s": Column("step time of the side behind", "s"),
    "startup_s": Column("start-up of the side ahead minus that of the other", "s"),
    "capacity": Column(
        "total or limit of the value, in its unit; for quality, the equivalence margin; for a run, its steps"
    ),
    "lost": _count("number of cells that ran out of memory"),
    "lost_place": _text("the smallest cell that ran out of memory"),
    "quantity": _text("the mistake, metric, protocol or published quantity"),
    "data": _text("for trained models: the held-out rows used to compare them, and whether these are generated"),
    "reason": _text("reason why there is no value"),
    "trials": _count("minimum number of ok trials, or seeds, that the answer is based on"),
    "measured_on": _text("for a machine measured elsewhere: the date of the measurement"),
    "published": _text("the published value"),
    "verdict": _text("for a claim: its verdict"),
    "caveats": _many("caveats: words of `CAVEATS` in crossover.answers.vocabulary, and flags"),
}

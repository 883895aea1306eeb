"""The keys of a study's file as pydantic models: allowed values, defaults and descriptions.

Those of the numbers in `effort`, `refinement` and `quality` are in studies.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from crossover.config.figure_kinds import FIGURE_KINDS
from crossover.config.key_types import (
    MOST_PUBLISHED,
    CoreCount,
    Count,
    Device,
    Execution,
    Flag,
    GivenKeys,
    Keys,
    Matching,
    Mode,
    OneOf,
    PartOf,
    Positive,
    Precision,
    Protocol,
    Range,
    Seconds,
    Set,
    Several,
    SizeName,
    Text,
    Trials,
)
from crossover.config.models import FORMS, MODES
from crossover.config.studies import LATENCY_STEPS_MAX, LATENCY_STEPS_MIN, MOST_EPOCHS, Effort, Quality, Refinement
from crossover.config.words import BASELINE, HALF, PLAIN, X_AXES

MOST_SAMPLES = 1_000_000_000_000

XAxis = Annotated[str, OneOf(tuple(X_AXES))]
X_AXIS = (
    "The x axis of figures and crossovers: `size`, `parameters`, `batch_size`, or `cpu_threads`, for the number of "
    "cores that the accelerator is worth. If the sizes of a study do not differ in parameters (pixels, tokens, a "
    "frozen model), the size is used instead of `parameters`. The other axes distinguish series."
)


class Data(Keys):
    file: Text = Field(description="The path of the file.")
    targets: Text = Field(
        description="The column to predict: strings, booleans and whole numbers are classes, numbered from 0 in "
        "sorted order."
    )
    inputs: Several[Text] | None = Field(
        None, description="The columns to predict from; null for all except the targets and index columns."
    )


DATA = (
    "A table of samples for `model`, which then returns only the network: a CSV or Parquet file, the column to "
    "predict, and those to predict from. Null for none."
)


@dataclass(frozen=True)
class RefinementKeys(Refinement):
    """Keys of `refinement`."""

    pairs: tuple[Annotated[str, OneOf(("device", "precision", "execution"))], ...] = field(
        default=Refinement.pairs,
        metadata={
            "min_length": 1,
            "description": "Which crossovers in time to narrow down: `device`, each accelerator and the CPU; "
            "`precision`, fp32 and each other precision on one device; `execution`, eager and each other execution on "
            "one device.",
        },
    )


class Axes(GivenKeys):
    protocol: Protocol = Field("", description="What a step includes.")
    batch_size: Count = Field(1, description="Samples in a step.")
    precision: Precision = Field("", description="Arithmetic.")
    execution: Execution = Field("", description="How the step runs.")
    size: Count = Field(1, description="Point on the workload's size axis.")
    variant: Text = Field("", description="Option of the workload.")
    device: Device = Field("", description="Kind of device.")


class Side(Axes):
    metric: Text = Field(
        "",
        description="Numeric column of measurements.parquet (lists are averaged), samples_per_s or run_time_s.",
    )


WHERE = "Values of the axes that both sides share, as many as needed to select one cell (for a crossover, one series)."
RANGE = "Lowest and highest claimed value."
SIDE = "Values of this side's axes, and `metric` if the sides' metrics differ."


class CrossoverKeys(GivenKeys):
    range: Range = Field(description=RANGE)
    where: Axes = Field(default_factory=Axes, description=WHERE)


class SpeedupKeys(GivenKeys):
    slow: Axes = Field(description="Values of this side's axes.")
    fast: Axes = Field(description="Values of this side's axes.")
    where: Axes = Field(default_factory=Axes, description=WHERE)
    range: Range = Field(description=RANGE)


class RatioKeys(GivenKeys):
    metric: Text = Field("", description="The metric of both sides.")
    of: Side = Field(description=SIDE)
    over: Side = Field(description=SIDE)
    where: Axes = Field(default_factory=Axes, description=WHERE)


class RatioRangeKeys(RatioKeys):
    range: Range = Field(description=RANGE)


class RatioLimitKeys(RatioKeys):
    limit: Positive = Field(description="The ratio lies below this value.")


class TrainedWhere(GivenKeys):
    precision: Precision = Field("", description="Arithmetic of the training.")
    device: Device = Field("", description="Kind of device.")


class SameQualityKeys(GivenKeys):
    metric: Annotated[str, OneOf(("accuracy", "macro_f1", "weighted_f1"))] = Field(
        description="Measure of quality on the held-out rows."
    )
    within: Positive = Field(description="Largest difference that counts as the same.")
    study: Text | None = Field(None, description="Study that trains the models; null for the claim's own.")
    where: TrainedWhere = Field(
        default_factory=TrainedWhere, description="Restricts the claim to a device or precision; by default all."
    )


class ClaimKeys(GivenKeys):
    statement: Text = Field(description="The statement, in a clause.")
    source: Text | None = Field(
        None,
        description="Author, title and date of the source, or `ours` for our own statements; null takes "
        "`published.source`.",
    )
    published: Annotated[float, Field(strict=True, ge=0, le=MOST_PUBLISHED)] | Text | None = Field(
        None, description="The published value; null if the source gives none, so that only the tested range is shown."
    )
    crossover_between: CrossoverKeys | None = Field(
        None, description="The accelerator overtakes the CPU between two values on the study's x axis."
    )
    speedup_between: SpeedupKeys | None = Field(
        None, description="The ratio of two cells' step times, `slow` over `fast`, lies between two values."
    )
    ratio_between: RatioRangeKeys | None = Field(
        None, description="A ratio of two cells, or of two columns of one cell, lies between two values."
    )
    ratio_below: RatioLimitKeys | None = Field(
        None, description="A ratio of two cells, or of two columns of one cell, lies below a value."
    )
    same_quality: SameQualityKeys | None = Field(
        None,
        description="The trained model is as good on every device and in every precision as on the CPU in fp32.",
    )


@dataclass(frozen=True)
class QualityKeys(Quality):
    """Keys of `quality`."""

    classes: Annotated[Set[Text], Field(min_length=2)] | None = field(
        default=None, metadata={"description": "Names of the classes, in order; null for their numbers."}
    )


ASKED_METRICS = ("step_time_s", "device_used_bytes", "peak_allocated_bytes", "relative_error", "max_relative_error")


class AsksKeys(GivenKeys):
    of: Axes = Field(description="Values of this side's axes.")
    over: Axes = Field(description="Values of this side's axes.")
    metrics: Several[Annotated[str, OneOf(ASKED_METRICS)]] = Field(
        description="The metrics to compare, in this order: time and memory of a step, or the error of its result."
    )


Variant = Annotated[str, Matching("[A-Za-z0-9_]+", "a name of letters, digits and _", 100)]


class CandidatesKeys(Keys):
    sizes: Annotated[Set[Count], Field(min_length=2)] | None = Field(
        None,
        description="Sizes of the study at which candidates are measured; null for all. Each size costs one process "
        "per candidate, which takes up to a minute with `compile`.",
    )
    batch_sizes: Annotated[Set[Count], Field(min_length=1)] | None = Field(
        None, description="Batch sizes of the study at which candidates are measured; null for all."
    )
    executions: Set[Execution] = Field(
        [], description="Executions in addition to the study's; `cuda-graph` is skipped on a CPU."
    )
    precisions: Set[Precision] = Field(
        [],
        description="Precisions that count as equally accurate; only these are candidates. Empty for the study's "
        "first precision.",
    )
    cpu_variants: Set[Variant] = Field(
        [], description="Variants in addition to the study's, on the CPU only, such as a NumPy variant of a function."
    )
    cpu_threads: Set[CoreCount] = Field(
        [], description="Numbers of cores for the CPU, as in the study's `cpu_threads`."
    )
    protocols: Set[Protocol] = Field(
        [], description="Protocols of the study with which candidates are measured; empty for all."
    )


class Epochs(Keys):
    epochs: Annotated[int, Field(strict=True, ge=1, le=MOST_EPOCHS)] = Field(description="Epochs of the run.")
    samples: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] = Field(
        description="Samples per epoch; the last batch may be smaller."
    )


class PublishedKeys(Keys):
    statement: Text = Field(description="The statement, in a clause.")
    source: Text = Field(description="Author, title and date of the source.")
    crossover: Range | None = Field(
        None,
        description="Lowest and highest published crossover on the study's x axis (the same twice for a single value), "
        "or null.",
    )
    results: Text | None = Field(
        None,
        description="A CSV file with the source's measurements, beside the study's file or in config/published/, to "
        "show beside ours (docs/how-to/configure.md describes the format), or null.",
    )


class StudyKeys(Keys):
    """Keys of a study's file."""

    title: Text = Field(description="Heading of the study in the report.")
    question: Text = Field(description="The question that the study answers.")
    workload: Annotated[str, Matching("[A-Za-z0-9_-]+", "a module's name of letters, digits, _ and -")] = Field(
        description="What is computed: a module in scripts/crossover/measurement/workloads/."
    )
    model: Text | None = Field(
        None,
        description=f"Your own model in place of a workload: {FORMS}. Files are searched for beside the study's file, "
        "then in the working directory. With `model`, no other key is required.",
    )
    mode: Mode = Field(MODES[0], description="What a step of `model` does.")
    data: Data | None = Field(None, description=DATA)
    check: Flag = Field(True, description="Whether results of `model` are compared with double precision.")
    sizes: Several[Count | SizeName] = Field(
        description="Points on the workload's size axis; for a `model` also names, such as [resnet18, resnet34]."
    )
    batch_sizes: Several[Count] = Field(description="Samples in a step.")
    protocols: Several[Protocol] = Field(
        ["resident"],
        description="What a step includes. `resident` keeps the data on the device. `as_published` does what the "
        "source does. `loaded` takes each batch from the Dataset or loader that a `model` gives. `from_host` copies a "
        "batch from pinned host memory to the accelerator and the results back; `from_pageable` does so from pageable "
        "memory.",
    )
    precisions: Several[Precision] = Field(
        ["fp32"],
        description="Arithmetic. `fp32` is IEEE single precision with TF32 off, on every backend. `tf32` needs a GPU "
        "that has it. `amp-bf16` and `amp-fp16` use autocast, `amp-fp16` with a loss scaler. In `bf16`, `fp16` and "
        "`fp64`, parameters and inputs have that type too. Functions of your own are `as_written`.",
    )
    executions: Several[Execution] = Field(
        ["eager"],
        description="How the step runs. `compile` compiles the model with torch.compile; `cuda-graph` captures the "
        "whole step.",
    )
    variants: Several[Variant] = Field(
        [PLAIN],
        description="Options of the workload, as listed in VARIANTS of its module. For your own function, values of "
        "its argument `variant`. `plain` for none.",
    )
    devices: Several[Device] | None = Field(
        None,
        description="Restricts the study to these devices, for example if others would take too long; null for all of "
        "the run's.",
    )
    cpu_threads: Set[CoreCount] = Field(
        [],
        description="Numbers of cores to time the CPU on, in addition to all: numbers, or `half` of the physical "
        f"cores. They become devices such as `{BASELINE}-1` and `{BASELINE}-{HALF}`.",
    )
    effort: Annotated[Any, PartOf(Effort)] = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort` for this study. Of `warmup_max_s`, "
        "`timed_max_s` and `latencies_max_s`, the smaller value is used, so that a short run stays short.",
    )
    trials: Trials | None = Field(
        None,
        description="Number of trials of each cell, if fewer than the run's; null for the run's.",
    )
    refinement: Annotated[Any, PartOf(RefinementKeys)] | None = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort.refinement` for this study; null for no refinement.",
    )
    candidates: CandidatesKeys | None = Field(
        None,
        description="Additional configurations, to compare each device at its best. Each is measured once at `sizes`; "
        "refinement adds trials where one could be the fastest. None is measured if refinement starts from single "
        "trials, as in preset `quick`. Null for none.",
    )
    time_limit_s: Seconds | None = Field(
        None,
        description="Time limit of a trial, a training or one try of a search, in seconds; null for the run's limit.",
    )
    mem_mb: Annotated[int, Field(strict=True, ge=1, le=100_000_000)] | None = Field(
        None,
        description="Megabytes of host memory that each of the study's jobs requests on a cluster, doubled when a job "
        "is resubmitted; if null, estimated from the workload's number of parameters, and a fixed amount for a model.",
    )
    figures: Several[Annotated[str, OneOf(tuple(FIGURE_KINDS))]] = Field(
        ["times", "speedups", "machines", "map", "precisions", "time_split", "memory", "energy"],
        description="Kinds of figures to draw; those without data on the run's devices are skipped.",
    )
    x_axis: XAxis = Field("size", description=X_AXIS)
    latency_steps: Literal[0] | Annotated[int, Field(strict=True, ge=LATENCY_STEPS_MIN, le=LATENCY_STEPS_MAX)] = Field(
        0,
        description="Number of individually synchronised steps for percentiles of the latency, at least "
        f"{LATENCY_STEPS_MIN}, the minimum for a 95 % interval of the 99th percentile; 0 for none.",
    )
    latency_mistakes: Flag = Field(
        False,
        description="Whether the latency is also measured with the common mistakes, to show the resulting errors.",
    )
    largest_batch: Flag = Field(
        False,
        description="Whether the run also searches for the largest batch that fits, for each cell of the study, "
        "regardless of its batch size. The run's `largest_batch` has the settings. Needs `timed`.",
    )
    steps_per_run: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] | Epochs | None = Field(
        None,
        description="Steps of the published run, or its epochs and samples per epoch, to give times for a whole run "
        "as well. Null for none.",
    )
    timed: Flag = Field(
        True,
        description="Whether the cells are timed; false for a study that only trains models for their quality.",
    )
    quality: QualityKeys | None = Field(
        None,
        description="Trains each model on every device and in every precision from the same seeds, and compares their "
        "predictions; null for no training.",
    )
    published: PublishedKeys | None = Field(None, description="The published comparison, or null.")
    claims: list[ClaimKeys] = Field(
        [],
        description="Statements of the source and of our own that are checked against the measurements. Each has "
        "exactly one form, such as `ratio_below`. docs/how-to/configure.md has examples.",
    )
    asks: AsksKeys | None = Field(
        None,
        description="For a study that compares two sides at its largest size: the sides and metrics whose ratio is "
        "its first answer. Null to derive the answer from the figures.",
    )

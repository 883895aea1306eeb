"""A study: its keys with their limits, defaults and descriptions, its cells, and what follows from them.

The numbers in `effort` and `refinement` are described in studies.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from crossover.config.claim_forms import AxisValues, Claim
from crossover.config.figure_kinds import FIGURE_KINDS
from crossover.config.key_types import (
    KEYS,
    CoreCount,
    Count,
    Device,
    Execution,
    Flag,
    Matching,
    Mode,
    OneOf,
    PartOf,
    Precision,
    Protocol,
    Range,
    Seconds,
    Set,
    Several,
    Share,
    SizeName,
    Text,
    Trials,
    TwoOrMore,
    checker,
)
from crossover.config.models import FORMS, MODES, Model
from crossover.config.studies import (
    CAPS,
    LATENCY_STEPS_MAX,
    LATENCY_STEPS_MIN,
    MOST_EPOCHS,
    Cell,
    Effort,
    Refinement,
)
from crossover.config.words import (
    BASELINE,
    CPU_THREADS,
    CUDA_GRAPH,
    EACH,
    HALF,
    PLAIN,
    X_AXES,
    is_cpu,
    ranks_of_side,
    runs_on_ranks,
    threads_of_side,
)

MOST_SAMPLES = 1_000_000_000_000

Axes = dict[Text, Several[Count]]
AXES = (
    "Two sizes of a function as `model`, by the names of its arguments, in place of `sizes` and `batch_sizes`, such as "
    "`{m: [64, 256, 1024], k: [1, 8, 64]}`; null for none."
)
EpochCount = Annotated[int, Field(strict=True, ge=1, le=MOST_EPOCHS)]
XAxis = Annotated[str, OneOf(tuple(X_AXES))]
X_AXIS = (
    "The x axis of figures and crossovers: `size`, `parameters`, `batch_size`, or `cpu_threads`, for the number of "
    "cores that the accelerator is worth. If the sizes of a study do not differ in parameters (pixels, tokens, a "
    "frozen model), the size is used instead of `parameters`. The other axes distinguish series."
)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Data:
    file: Text = Field(description="The path of the file.")
    targets: Text = Field(
        description="The column to predict: strings, booleans and whole numbers are classes, numbered from 0 in "
        "sorted order."
    )
    inputs: Several[Text] | None = Field(
        default=None, description="The columns to predict from; null for all except the targets and index columns."
    )


DATA = (
    "A table of samples for `model`, which then returns only the network: a CSV or Parquet file, the column to "
    "predict, and those to predict from. Null for none."
)


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Quality:
    """The trainings that compare the quality of models."""

    epochs: EpochCount = Field(default=1, description="Passes over the training set.")
    seeds: Trials = Field(default=5, description="Number of trainings of each model; an interval needs at least two.")
    test_share: Share = Field(
        default=0.33, description="Share of the dataset's rows held out from training and predicted."
    )
    classes: TwoOrMore[Text] | None = Field(
        default=None, description="Names of the classes, in order; null for their numbers."
    )


ASKED_METRICS = ("step_time_s", "device_used_bytes", "peak_allocated_bytes", "relative_error", "max_relative_error")


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Asks:
    of: AxisValues = Field(description="Values of this side's axes.")
    over: AxisValues = Field(description="Values of this side's axes.")
    metrics: Several[Annotated[str, OneOf(ASKED_METRICS)]] = Field(
        description="The metrics to compare, in this order: time and memory of a step, or the error of its result."
    )


Variant = Annotated[str, Matching("[A-Za-z0-9_]+", "a name of letters, digits and _", 100)]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Candidates:
    """Configurations among which each device's best one is found, in addition to those of the study's grid."""

    sizes: TwoOrMore[Count] | None = Field(
        default=None,
        description="Sizes of the study at which candidates are measured; null for all. Each size costs one process "
        "per candidate, which takes up to a minute with `compile`.",
    )
    batch_sizes: Several[Count] | None = Field(
        default=None, description="Batch sizes of the study at which candidates are measured; null for all."
    )
    executions: Set[Execution] = Field(
        default=(), description="Executions in addition to the study's; `cuda-graph` is skipped on a CPU."
    )
    precisions: Set[Precision] = Field(
        default=(),
        description="Precisions that count as equally accurate; only these are candidates. Empty for the study's "
        "first precision.",
    )
    cpu_variants: Set[Variant] = Field(
        default=(),
        description="Variants in addition to the study's, on the CPU only, such as a NumPy variant of a function.",
    )
    cpu_threads: Set[CoreCount] = Field(
        default=(), description="Numbers of cores for the CPU, as in the study's `cpu_threads`."
    )
    protocols: Set[Protocol] = Field(
        default=(), description="Protocols of the study with which candidates are measured; empty for all."
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Epochs:
    epochs: EpochCount = Field(description="Epochs of the run.")
    samples: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] = Field(
        description="Samples per epoch; the last batch may be smaller."
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Published:
    statement: Text = Field(description="The statement, in a clause.")
    source: Text = Field(description="Author, title and date of the source.")
    crossover: Range | None = Field(
        default=None,
        description="Lowest and highest published crossover on the study's x axis (the same twice for a single value), "
        "or null.",
    )
    results: Text | None = Field(
        default=None,
        description="A CSV file with the source's measurements, beside the study's file or in config/published/, to "
        "show beside ours (docs/how-to/configure.md describes the format), or null.",
    )


@dataclass(frozen=True, kw_only=True, config=KEYS)
class PublishedRows(Published):
    """A published comparison with the source's measurements."""

    rows: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, config=KEYS)
class StudyFile:
    """Keys of a study's file."""

    title: Text = Field(description="Heading of the study in the report.")
    question: Text = Field(description="The question that the study answers.")
    workload: Annotated[str, Matching("[A-Za-z0-9_-]+", "a module's name of letters, digits, _ and -")] = Field(
        description="What is computed: a module in scripts/crossover/measurement/workloads/."
    )
    model: Text | None = Field(
        default=None,
        description=f"Your own model in place of a workload: {FORMS}. Files are searched for beside the study's file, "
        "then in the working directory. With `model`, no other key is required.",
    )
    mode: Mode = Field(default=MODES[0], description="What a step of `model` does.")
    data: Data | None = Field(default=None, description=DATA)
    check: Flag = Field(default=True, description="Whether results of `model` are compared with double precision.")
    axes: Axes | None = Field(default=None, description=AXES)
    sizes: Several[Count | SizeName] = Field(
        description="Points on the workload's size axis; for a `model` also names, such as [resnet18, resnet34]."
    )
    batch_sizes: Several[Count] = Field(description="Samples in a step.")
    protocols: Several[Protocol] = Field(
        default=("resident",),
        description="What a step includes. `resident` keeps the data on the device. `as_published` does what the "
        "source does. `loaded` takes each batch from the Dataset or loader that a `model` gives. `from_host` copies a "
        "batch from pinned host memory to the accelerator and the results back; `from_pageable` does so from pageable "
        "memory. Several GPUs share a batch; in `each`, every one takes a batch, and times are for one batch. `cold` "
        "times single calls on resident data, before each of which the caches are evicted.",
    )
    precisions: Several[Precision] = Field(
        default=("fp32",),
        description="Arithmetic. `fp32` is IEEE single precision with TF32 off, on every backend. `tf32` needs a GPU "
        "that has it. `amp-bf16` and `amp-fp16` use autocast, `amp-fp16` with a loss scaler. In `bf16`, `fp16` and "
        "`fp64`, parameters and inputs have that type too. Functions of your own are `as_written`.",
    )
    executions: Several[Execution] = Field(
        default=("eager",),
        description="How the step runs. `compile` compiles the model with torch.compile; `cuda-graph` captures the "
        "whole step.",
    )
    variants: Several[Variant] = Field(
        default=(PLAIN,),
        description="Options of the workload, as listed in VARIANTS of its module. For your own function, values of "
        "its argument `variant`. `plain` for none.",
    )
    devices: Several[Device] | None = Field(
        default=None,
        description="Restricts the study to these devices, for example if others would take too long; null for all of "
        "the run's.",
    )
    cpu_threads: Set[CoreCount] = Field(
        default=(),
        description="Numbers of cores to time the CPU on, in addition to all: numbers, or `half` of the physical "
        f"cores. They become devices such as `{BASELINE}-1` and `{BASELINE}-{HALF}`.",
    )
    effort: Annotated[Mapping[str, Any], PartOf(Effort)] = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort` for this study. Of `warmup_max_s`, "
        "`timed_max_s` and `latencies_max_s`, the smaller value is used, so that a short run stays short.",
    )
    trials: Trials | None = Field(
        default=None,
        description="Number of trials of each cell, if fewer than the run's; null for the run's.",
    )
    refinement: Annotated[Mapping[str, Any], PartOf(Refinement)] | None = Field(
        default_factory=dict,
        description="Numbers that differ from the run's `effort.refinement` for this study; null for no refinement.",
    )
    candidates: Candidates | None = Field(
        default=None,
        description="Additional configurations, to compare each device at its best. Each is measured once at `sizes`; "
        "refinement adds trials where one could be the fastest. None is measured if refinement starts from single "
        "trials, as in preset `quick`. Null for none.",
    )
    time_limit_s: Seconds | None = Field(
        default=None,
        description="Time limit of a trial, a training or one try of a search, in seconds; null for the run's limit.",
    )
    mem_mb: Annotated[int, Field(strict=True, ge=1, le=100_000_000)] | None = Field(
        default=None,
        description="Megabytes of host memory that each of the study's jobs requests on a cluster, doubled when a job "
        "is resubmitted; if null, estimated from the workload's number of parameters, and a fixed amount for a model.",
    )
    figures: Several[Annotated[str, OneOf(tuple(FIGURE_KINDS))]] = Field(
        default=("times", "speedups", "machines", "map", "precisions", "time_split", "memory", "energy"),
        description="Kinds of figures to draw; those without data on the run's devices are skipped.",
    )
    x_axis: XAxis = Field(default="size", description=X_AXIS)
    latency_steps: Literal[0] | Annotated[int, Field(strict=True, ge=LATENCY_STEPS_MIN, le=LATENCY_STEPS_MAX)] = Field(
        default=0,
        description="Number of individually synchronised steps for percentiles of the latency, at least "
        f"{LATENCY_STEPS_MIN}, the minimum for a 95 % interval of the 99th percentile; 0 for none.",
    )
    latency_mistakes: Flag = Field(
        default=False,
        description="Whether the latency is also measured with the common mistakes, to show the resulting errors.",
    )
    largest_batch: Flag = Field(
        default=False,
        description="Whether the run also searches for the largest batch that fits, for each cell of the study, "
        "regardless of its batch size. The run's `largest_batch` has the settings. Needs `timed`.",
    )
    steps_per_run: Annotated[int, Field(strict=True, ge=1, le=MOST_SAMPLES)] | Epochs | None = Field(
        default=None,
        description="Steps of the published run, or its epochs and samples per epoch, to give times for a whole run "
        "as well. Null for none.",
    )
    timed: Flag = Field(
        default=True,
        description="Whether the cells are timed; false for a study that only trains models for their quality.",
    )
    quality: Quality | None = Field(
        default=None,
        description="Trains each model on every device and in every precision from the same seeds, and compares their "
        "predictions; null for no training.",
    )
    published: Published | None = Field(default=None, description="The published comparison, or null.")
    claims: tuple[Claim, ...] = Field(
        default=(),
        description="Statements of the source and of our own that are checked against the measurements. Each has "
        "exactly one form, such as `ratio_below`. docs/how-to/configure.md has examples.",
    )
    asks: Asks | None = Field(
        default=None,
        description="For a study that compares two sides at its largest size: the sides and metrics whose ratio is "
        "its first answer. Null to derive the answer from the figures.",
    )

    @model_validator(mode="after")
    def _with_sources(self) -> StudyFile:
        if self.published and any(claim.source is None for claim in self.claims):
            claims = [replace(claim, source=claim.source or self.published.source) for claim in self.claims]
            object.__setattr__(self, "claims", tuple(claims))
        return self


LEAST_OF_MAP = 3
"""Minimum number of values on each axis of a map of speed-ups."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Study(StudyFile):
    """A study as it is read: with a name, its sizes as numbers, and its model."""

    name: str
    sizes: Several[Count]
    published: PublishedRows | None = None
    user_model: Model | None = None

    @property
    def points(self) -> tuple[int | str, ...]:
        """The points on the x axis; for `cpu_threads`, without the point for all cores."""
        if self.x_axis == CPU_THREADS:
            return self.cpu_threads
        return self.batch_sizes if self.x_axis == "batch_size" else self.sizes

    def devices_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on."""
        return [device for device in devices if self.devices is None or device in self.devices]

    @property
    def may_use_accelerator(self) -> bool:
        """Whether the study's own `devices` are not all CPU sides."""
        return self.devices is None or not all(map(is_cpu, self.devices))

    def sides_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on, with the CPU on fewer cores after the CPU."""
        fewer = [f"{BASELINE}-{threads}" for threads in self.cpu_threads]
        return [
            side for device in self.devices_among(devices) for side in (device, *(fewer if device == BASELINE else ()))
        ]

    def cells(self, devices: Sequence[str]) -> list[Cell]:
        """The study's grid on the run's devices; empty if the study times nothing."""
        axes = (self.variants, self.protocols, self.batch_sizes, self.precisions, self.executions, self.sizes)
        grid = product(*axes, self.sides_among(devices) if self.timed else ())
        return [
            Cell(
                self.name,
                self.workload,
                protocol,
                batch_size,
                precision,
                execution,
                size,
                device,
                variant,
                model=self.user_model,
            )
            for variant, protocol, batch_size, precision, execution, size, device in grid
            if _is_measured(protocol, execution, device)
        ]

    @property
    def second_axis(self) -> str | None:
        """The second axis of the study's map of speed-ups; None if an axis has fewer than LEAST_OF_MAP values."""
        over_cores = self.x_axis == CPU_THREADS
        others = len(self.cpu_threads) + 1 if over_cores else len(self.batch_sizes)
        if min(len(self.sizes), others) < LEAST_OF_MAP:
            return None
        return "batch_size" if X_AXES[self.x_axis] == "size" else "size"

    @property
    def has_plane(self) -> bool:
        """Whether both axes of the study's map are sizes and batch sizes; False if one is the number of cores."""
        return self.second_axis is not None and self.x_axis != CPU_THREADS

    @property
    def compared(self) -> Study | None:
        """The study with the grid of its candidates as well; None without `candidates`."""
        candidates = self.candidates
        if candidates is None:
            return None
        return replace(
            self,
            sizes=candidates.sizes or self.sizes,
            batch_sizes=candidates.batch_sizes or self.batch_sizes,
            protocols=candidates.protocols or self.protocols,
            precisions=candidates.precisions or self.precisions[:1],
            executions=tuple(dict.fromkeys([*self.executions, *candidates.executions])),
            variants=tuple(dict.fromkeys([*self.variants, *candidates.cpu_variants])),
            cpu_threads=tuple(dict.fromkeys([*self.cpu_threads, *candidates.cpu_threads])),
        )

    def has(self, execution: str, precision: str, variant: str, device: str) -> bool:
        """Whether the study's grid has cells with this execution, precision, variant and side."""
        threads = threads_of_side(device)
        return (
            execution in self.executions
            and precision in self.precisions
            and variant in self.variants
            and (threads is None or threads in self.cpu_threads)
        )


def _is_measured(protocol: str, execution: str, device: str) -> bool:
    """Whether a cell exists: several GPUs need `runs_on_ranks`, and the CPU alone needs no batch `each`."""
    if ranks_of_side(device) > 1:
        return runs_on_ranks(protocol, execution)
    return protocol != EACH or device != BASELINE


def cells_of_candidates(study: Study, devices: Sequence[str]) -> list[Cell]:
    """The cells that a study's `candidates` add to its grid."""
    compared = study.compared
    if compared is None:
        return []
    grid = {*study.cells(devices)}
    return [
        cell
        for cell in compared.cells(devices)
        if cell not in grid
        and ranks_of_side(cell.device) == 1
        and not (cell.execution == CUDA_GRAPH and is_cpu(cell.device))
        and (cell.variant in study.variants or is_cpu(cell.device))
        and (threads_of_side(cell.device) is None or cell.execution in study.executions)
    ]


def trained_cells(study: Study, devices: Sequence[str]) -> list[Cell]:
    """Cells whose models a study trains. Protocol, execution and threads are fixed; models do not depend on them."""
    if study.quality is None:
        return []
    return replace(study, timed=True, protocols=("resident",), executions=("eager",), cpu_threads=()).cells(
        [device for device in devices if ranks_of_side(device) == 1]
    )


def effort_of(study: Study, run: Effort) -> Effort:
    """The effort of a study's trials: the run's, except for numbers that the study sets (or lowers, if in CAPS)."""
    numbers = {key: min(value, getattr(run, key)) if key in CAPS else value for key, value in study.effort.items()}
    return replace(run, **numbers)


def steps_of_run(steps_per_run: int | Epochs | None, batch_size: int) -> int | None:
    """Number of steps of a whole run at a batch size; None without `steps_per_run`."""
    if isinstance(steps_per_run, Epochs):
        return steps_per_run.epochs * math.ceil(steps_per_run.samples / batch_size)
    return steps_per_run


PREVIEW_SIZES = 5
"""Number of points for a study's first answer: both ends, the middle and the quarters."""


def preview(study: Study) -> Study:
    """The part of a study that is measured for its first answer.

    It has PREVIEW_SIZES points of the x axis and one value of most other axes. A study with few points is not reduced.
    """
    points = study.points if study.x_axis == CPU_THREADS else tuple(sorted(study.points))
    if len(points) <= PREVIEW_SIZES:
        return study
    gaps = PREVIEW_SIZES - 1
    few = tuple(points[round(number * (len(points) - 1) / gaps)] for number in range(PREVIEW_SIZES))
    along = {CPU_THREADS: "cpu_threads", "batch_size": "batch_sizes"}.get(study.x_axis, "sizes")
    first: dict[str, Any] = {"sizes": study.sizes[:1], "batch_sizes": study.batch_sizes[:1]}
    return replace(
        study,
        **{**first, along: few},
        protocols=study.protocols[:1],
        precisions=study.precisions[:1],
        executions=study.executions[:1],
        variants=study.variants[:1],
    )


def study_of(values: Mapping[str, Any]) -> Study:
    """The study with these values in `plan.json` or `provenance.json`; raises pydantic.ValidationError for others."""
    study: Study = checker(Study).validate_python(values, extra="ignore")
    return study


def written(study: Study) -> dict[str, Any]:
    """The keys of a study that differ from their defaults, as JSON values, without the rows of published results."""
    without: Any = {"published": {"rows"}}
    keys: dict[str, Any] = checker(Study).dump_python(study, mode="json", exclude_defaults=True, exclude=without)
    return keys

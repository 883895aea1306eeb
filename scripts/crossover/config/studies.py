"""Studies, their cells, and the effort of a run.

Plain values without dependencies, which a measuring process can import quickly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, TypeVar

from crossover.config.models import Model
from crossover.config.words import AXES, BASELINE, CPU_THREADS, CUDA_GRAPH, HERE, PLAIN, X_AXES, is_cpu, threads_of_side
from crossover.errors import UserError

MOST = 1_000_000_000
MOST_SEED = 2_000_000_000
"""Largest seed in a config. Each trial adds its number, and some generators accept only 32 bits."""
MOST_THREADS = 4096
MOST_TRIALS = 1000
MOST_EPOCHS = 1_000_000
MOST_TOLERANCE = 100
LONGEST_S = 1_000_000
LATENCY_STEPS_MIN = 368
"""Minimum number of steps for a 95 % interval of the 99th percentile: 0.99^368 = 0.025 (`crossover.percentiles`)."""
LATENCY_STEPS_MAX = 1_000_000
"""Maximum number of steps, since all latencies of a trial are stored in one row."""

CHECKED = {"extra": "forbid", "allow_inf_nan": False}
"""Settings for pydantic, which checks the keys of a config against these dataclasses."""

Number = TypeVar("Number", int, float, int | None)


def number(default: Number, description: str, **bounds: float) -> Number:
    """A dataclass field that a config may set, with bounds named as in pydantic: ge, gt, le, lt."""
    return field(default=default, metadata={"description": description, "strict": True, **bounds})


@dataclass(frozen=True)
class Effort:
    """Limits and tolerances (shares) of a trial's warm-up and timing. The defaults are those of preset `default`.

    Trials are short, since times differ more between processes than within one: time is better spent on more trials.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    warmup_min_steps: int = number(20, "Minimum number of warm-up steps.", ge=1, le=MOST)
    warmup_min_s: float = number(0.2, "Shortest warm-up in seconds.", ge=0, le=LONGEST_S)
    # On an H100, CUDA graphs took 2 to 3 % longer during the first 0.6 s (docs/explanation/measurement.md).
    warmup_accelerator_min_s: float = number(
        0.7, "Shortest warm-up on an accelerator in seconds, if more than `warmup_min_s`.", ge=0, le=LONGEST_S
    )
    warmup_long_s: float = number(
        0.5,
        "Seconds after which a steady warm-up with slow steps may end, regardless of the number of steps. Ignored if "
        "above `warmup_max_s`.",
        gt=0,
        le=LONGEST_S,
    )
    warmup_max_s: float = number(
        30.0, "Longest warm-up in seconds; a trial not steady by then is flagged `warmup_capped`.", gt=0, le=LONGEST_S
    )
    warmup_tolerance: float = number(
        0.02,
        "The warm-up is steady once the medians of its last two quarters, each usually of at least 20 steps, differ by "
        "no more than this share.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    block_min_s: float = number(
        0.01, "Shortest block in seconds; a block has as many steps as that takes.", gt=0, le=LONGEST_S
    )
    blocks_min: int = number(
        20, "Minimum number of timed blocks, if `timed_max_s` leaves time for them.", ge=2, le=MOST
    )
    timed_min_s: float = number(0.15, "Shortest sum of timed blocks in seconds.", ge=0, le=LONGEST_S)
    timed_max_s: float = number(
        0.5, "Timing ends after this many seconds, once there are at least two blocks.", gt=0, le=LONGEST_S
    )
    timed_tolerance: float = number(
        0.02,
        "After `blocks_min` and `timed_min_s`, timing ends once the half-width of the step time's 95 % interval, "
        "from 20 batch medians, is at most this share.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    latencies_max_s: float = number(
        60.0,
        "Maximum time in seconds for a study's `latency_steps` with each method. If they do not fit, fewer steps are "
        "timed, at least 50; the 95th percentile needs 72, the 99th 368.",
        gt=0,
        le=LONGEST_S,
    )

    def on(self, device: str) -> Effort:
        """The effort on a device; an accelerator has a longer minimum warm-up, up to `warmup_max_s`."""
        if is_cpu(device):
            return self
        min_s = min(self.warmup_accelerator_min_s, self.warmup_max_s)
        return replace(self, warmup_min_s=max(self.warmup_min_s, min_s), warmup_long_s=max(self.warmup_long_s, min_s))


@dataclass(frozen=True)
class Refinement:
    """Measurements in addition to the grid that narrow crossovers down. The defaults are those of preset `default`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    bisections: int = number(
        2,
        "Maximum number of sizes to add, one after another, each at the middle of a crossover's bracket on a log axis. "
        "None is added if the crossover's interval is wider than the bracket. At a stair, later stages add "
        "sizes too.",
        ge=0,
        le=20,
    )
    target_width: float = number(
        0.05,
        "Further trials are measured if the crossover's 95 % interval is wider than ± this share of the crossover.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    extra_trials: int = number(
        8,
        "Trials in addition to `trials`, at the sizes within and at the ends of the final bracket, if the crossover's "
        "interval is still wider than `target_width`.",
        ge=0,
        le=MOST_TRIALS,
    )
    pairs: tuple[str, ...] = ("device",)
    """Kinds of comparison whose crossovers are narrowed down; a study with `candidates` adds `best`."""
    first_trials: int = number(
        3,
        "Number of initial trials of every size. The remaining `trials` go to the sizes on which a crossover depends, "
        "and to those where the faster side is undecided.",
        ge=1,
        le=MOST_TRIALS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))  # lists in files become tuples

    def first(self, trials: int) -> int:
        """Number of initial trials of every size, in a study with `trials` trials."""
        return min(self.first_trials, trials)

    def trials_of_stages(self, trials: int) -> tuple[int, ...]:
        """Number of trials of the sizes at a crossover, at the end of each stage after the bisections."""
        # After single trials many sizes are undecided; second trials decide some of them.
        second = (2,) if self.first_trials == 1 and trials > 2 else ()
        stages = (*second, trials) if self.first_trials < trials else ()
        return (*stages, trials + self.extra_trials) if self.extra_trials else stages


@dataclass(frozen=True)
class Preset:
    trials: int
    effort: Effort = Effort()
    refinement: Refinement = Refinement()


PRESETS = {
    "quick": Preset(
        trials=3,
        effort=Effort(
            warmup_accelerator_min_s=0.3,
            warmup_max_s=3.0,
            warmup_tolerance=0.05,
            timed_max_s=0.2,
            latencies_max_s=3.0,
        ),
        refinement=Refinement(bisections=0, extra_trials=0, first_trials=1),
    ),
    "default": Preset(trials=8),
    "thorough": Preset(trials=15, refinement=Refinement(first_trials=5)),
}

CAPS = ("warmup_max_s", "timed_max_s", "latencies_max_s")
"""Numbers of the effort that a study can only lower, so that a short run stays short."""

ENDS = (("warmup_min_s", "warmup_max_s"), ("timed_min_s", "timed_max_s"))
"""Pairs of keys for the minimum and the maximum of the same time."""


@dataclass(frozen=True)
class BatchSearch:
    """Limits of a search for the largest batch."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    start: int = number(64, "First batch size to try; sizes double from there.", ge=1, le=MOST)
    limit: int | None = number(None, "Largest batch size to try, or null for no limit.", ge=1, le=MOST)
    memory_limit: int | str | None = None
    """Bytes, or a number with a unit; None: the default of find_largest_batch.py."""
    timed_batches: int = number(
        100,
        "Maximum number of batches of the largest size to time for its throughput; 0 for none. Timing ends after about "
        "10 s, but not before 3 batches.",
        ge=0,
        le=MOST,
    )


@dataclass(frozen=True)
class Quality:
    """Settings of the trainings that compare the quality of models."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    epochs: int = number(1, "Passes over the training set.", ge=1, le=MOST_EPOCHS)
    seeds: int = number(5, "Number of trainings of each model; an interval needs at least two.", ge=1, le=MOST_TRIALS)
    test_share: float = number(0.33, "Share of the dataset's rows held out from training and predicted.", gt=0, lt=1)
    classes: Sequence[str] | None = None
    """Names of the classes, in order; None to use their numbers."""


@dataclass(frozen=True)
class Asks:
    """A study's key `asks`: the axes that select its two sides, and the metrics to compare."""

    of: Mapping[str, Any]
    over: Mapping[str, Any]
    metrics: Sequence[str]

    @classmethod
    def of_study(cls, study: Mapping[str, Any]) -> Asks | None:
        """The value of `asks` among a study's keys; None if it is not given."""
        return cls(**study["asks"]) if study.get("asks") else None


@dataclass(frozen=True)
class Candidates:
    """Configurations among which each device's best one is found: those of the study's grid, and additional ones."""

    sizes: Sequence[int]
    batch_sizes: Sequence[int]
    executions: Sequence[str]
    precisions: Sequence[str]
    """Precisions that count as equally accurate; others are not candidates."""
    protocols: Sequence[str]
    cpu_variants: Sequence[str]
    cpu_threads: Sequence[int | str]
    own_executions: Sequence[str]
    own_precisions: Sequence[str]
    own_variants: Sequence[str]
    own_threads: Sequence[int | str]

    @classmethod
    def of(cls, study: Mapping[str, Any]) -> Candidates | None:
        """The candidates from a study's keys; None if `candidates` is not given."""
        if not study.get("candidates"):
            return None
        candidates = study["candidates"]
        return cls(
            sizes=candidates.get("sizes") or study["sizes"],
            batch_sizes=candidates.get("batch_sizes") or study["batch_sizes"],
            executions=candidates.get("executions", ()),
            precisions=candidates.get("precisions") or study["precisions"][:1],
            protocols=candidates.get("protocols") or study["protocols"],
            cpu_variants=candidates.get("cpu_variants", ()),
            cpu_threads=candidates.get("cpu_threads", ()),
            own_executions=study["executions"],
            own_precisions=study["precisions"],
            own_variants=study["variants"],
            own_threads=study["cpu_threads"],
        )

    def has_own(self, execution: str, precision: str, variant: str, device: str) -> bool:
        """Whether the study's grid has cells with this execution, precision, variant and side."""
        threads = threads_of_side(device)
        return (
            execution in self.own_executions
            and precision in self.own_precisions
            and variant in self.own_variants
            and (threads is None or threads in self.own_threads)
        )


@dataclass(frozen=True)
class Cell:
    """A configuration to measure: a value on each axis."""

    study: str
    workload: str
    protocol: str
    batch_size: int
    precision: str
    execution: str
    size: int
    device: str
    variant: str = PLAIN
    machine: str = HERE
    model: Model | None = field(default=None, compare=False)
    """The user's model, for workload `model`; not an axis, since a study has only one."""

    @property
    def path(self) -> str:
        """The cell's folder below results/cells/."""
        pattern = CELL_PATH if self.machine == HERE else MACHINE_PATH
        return pattern.format(**self.values)

    @property
    def values(self) -> dict[str, Any]:
        return {axis: getattr(self, axis) for axis in AXES}


CELL_PATH = "{study}/{workload}/{variant}/{protocol}/batch-{batch_size}/{precision}/{execution}/size-{size}/{device}"
"""Pattern of a cell's folder; its placeholders are axes, and also wildcards of the rules that measure."""
MACHINE_PATH = CELL_PATH.replace("/{device}", "/{machine}/{device}")
"""Pattern of a cell's folder in a run with classes of nodes."""
SEARCH_PATH = CELL_PATH.replace("/batch-{batch_size}", "")
SEARCH_VERSION = 1
"""Version of the keys in a search's file."""
TRAINING_PATH = f"{CELL_PATH}/seed-{{seed}}"


@dataclass(frozen=True)
class Study:
    """A question with its grid and settings. `crossover.config.study_keys.StudyKeys` describes each key."""

    name: str
    title: str
    question: str
    workload: str
    sizes: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    protocols: tuple[str, ...]
    precisions: tuple[str, ...]
    executions: tuple[str, ...]
    variants: tuple[str, ...] = (PLAIN,)
    devices: tuple[str, ...] | None = None
    cpu_threads: tuple[int | str, ...] = ()
    x_axis: str = "size"
    figures: tuple[str, ...] = ("times",)
    effort: Mapping[str, Any] = field(default_factory=dict)
    trials: int | None = None
    refinement: Mapping[str, Any] | None = field(default_factory=dict)
    candidates: Mapping[str, Any] | None = None
    time_limit_s: float | None = None
    mem_mb: int | None = None
    latency_steps: int = 0
    latency_mistakes: bool = False
    largest_batch: bool = False
    asks: Mapping[str, Any] | None = None
    steps_per_run: int | Mapping[str, int] | None = None
    published: Mapping[str, Any] | None = None
    claims: tuple[Mapping[str, Any], ...] = ()
    timed: bool = True
    quality: Mapping[str, Any] | None = None
    model: Model | None = None

    @property
    def points(self) -> tuple[int | str, ...]:
        """The points on the x axis; for `cpu_threads`, without the point for all cores."""
        if self.x_axis == CPU_THREADS:
            return self.cpu_threads
        return self.batch_sizes if self.x_axis == "batch_size" else self.sizes

    def devices_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on."""
        return [device for device in devices if self.devices is None or device in self.devices]

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
                model=self.model,
            )
            for variant, protocol, batch_size, precision, execution, size, device in grid
        ]


def cells_of_candidates(study: Study, devices: Sequence[str]) -> list[Cell]:
    """The cells that a study's `candidates` add to its grid."""
    candidates = Candidates.of(vars(study))
    if candidates is None:
        return []
    widened = replace(
        study,
        sizes=tuple(candidates.sizes),
        batch_sizes=tuple(candidates.batch_sizes),
        protocols=tuple(candidates.protocols),
        precisions=tuple(candidates.precisions),
        executions=tuple(dict.fromkeys([*study.executions, *candidates.executions])),
        variants=tuple(dict.fromkeys([*study.variants, *candidates.cpu_variants])),
        cpu_threads=tuple(dict.fromkeys([*study.cpu_threads, *candidates.cpu_threads])),
    )
    grid = {*study.cells(devices)}
    return [
        cell
        for cell in widened.cells(devices)
        if cell not in grid
        and not (cell.execution == CUDA_GRAPH and is_cpu(cell.device))
        and (cell.variant in study.variants or is_cpu(cell.device))
        and (threads_of_side(cell.device) is None or cell.execution in study.executions)
    ]


def quality_of(study: Study) -> Quality | None:
    """Settings of a study's trainings; None if it trains no models."""
    return None if study.quality is None else Quality(**study.quality)


def trained_cells(study: Study, devices: Sequence[str]) -> list[Cell]:
    """Cells whose models a study trains. Protocol, execution and threads are fixed; models do not depend on them."""
    if study.quality is None:
        return []
    return replace(study, timed=True, protocols=("resident",), executions=("eager",), cpu_threads=()).cells(devices)


def effort_of(study: Study, run: Effort) -> Effort:
    """The effort of a study's trials: the run's, except for numbers that the study sets (or lowers, if in CAPS)."""
    numbers = {key: min(value, getattr(run, key)) if key in CAPS else value for key, value in study.effort.items()}
    return replace(run, **numbers)


def check_any_for(studies: Sequence[Study], devices: Sequence[str]) -> None:
    """Raise UserError if no study measures on any of the run's devices."""
    if not any(study.devices_among(devices) for study in studies):
        wanted = "; ".join(f"{study.name}: {', '.join(study.devices or ())}" for study in studies)
        raise UserError(
            f"studies: none measures on a device of this run ({', '.join(devices)}); devices of the studies: {wanted}; "
            "choose another study or machine, or edit `devices` in the study's file"
        )


LEAST_OF_MAP = 3
"""Minimum number of values on each axis of a map of speed-ups."""


def second_axis(study: Mapping[str, Any]) -> str | None:
    """The second axis of a study's map of speed-ups; None if an axis has fewer than LEAST_OF_MAP values."""
    others = [*study["cpu_threads"], "all"] if study["x_axis"] == CPU_THREADS else study["batch_sizes"]
    if min(len(study["sizes"]), len(others)) < LEAST_OF_MAP:
        return None
    return "batch_size" if X_AXES[study["x_axis"]] == "size" else "size"


def steps_of_run(steps_per_run: int | Mapping[str, int] | None, batch_size: int) -> int | None:
    """Number of steps of a whole run at a batch size; None without `steps_per_run`."""
    if isinstance(steps_per_run, Mapping):
        return steps_per_run["epochs"] * math.ceil(steps_per_run["samples"] / batch_size)
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


def in_rounds(
    cells: Sequence[Cell], trials: int, seed: int, once: Sequence[Cell] = (), first: Collection[Cell] = ()
) -> Iterator[tuple[int, Cell]]:
    """Yield (trial, cell) round by round, with the cells in random order; those in `once` only in the first round.

    Cells that differ only in their device follow each other, since they are compared. The first round goes study by
    study, each beginning with its cells in `first`, so that first answers come soon. Adding trials does not change
    the order within a round.
    """
    studies = list(dict.fromkeys(cell.study for cell in cells))
    for trial in range(1, trials + 1):
        order = sorted([*cells, *(once if trial == 1 else ())], key=lambda cell: cell.path)
        random.Random(f"{seed}/{trial}").shuffle(order)
        ranks: dict[Cell, int] = {}
        for rank, cell in enumerate(order):
            ranks.setdefault(replace(cell, device=""), rank)
        order.sort(key=lambda cell: ranks[replace(cell, device="")])
        if trial == 1:
            order.sort(key=lambda cell: (studies.index(cell.study), cell not in first))
        for cell in order:
            yield trial, cell

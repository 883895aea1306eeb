"""Studies, their cells, and the effort spent on them.

Plain values without dependencies, so that a measuring process can import them for free.
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
"""A trial adds its number, and not every generator takes seeds of more than 32 bits."""
MOST_THREADS = 4096
MOST_TRIALS = 1000
MOST_EPOCHS = 1_000_000
MOST_TOLERANCE = 100
LONGEST_S = 1_000_000
LATENCY_STEPS_MIN = 368
"""The fewest of which the 99th percentile has a 95 % interval: 0.99^368 = 0.025 (`crossover.percentiles`)."""
LATENCY_STEPS_MAX = 1_000_000
"""A row holds them all."""

CHECKED = {"extra": "forbid", "allow_inf_nan": False}
"""Pydantic's settings for a mapping with some of a dataclass's fields."""

Number = TypeVar("Number", int, float, int | None)


def number(default: Number, description: str, **bounds: float) -> Number:
    """A field of a dataclass that a config may set, with bounds as pydantic names them: ge, gt, le, lt."""
    metadata = {"description": description, "strict": True, **bounds}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Effort:
    """Duration of warm-up and timing of a trial, in seconds, and tolerances as shares. Defaults: the preset `default`.

    Trials are short, since processes differ by more than the steps of one: time is better spent on another process.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    warmup_min_steps: int = number(20, "Least number of warm-up steps.", ge=1, le=MOST)
    warmup_min_s: float = number(0.2, "Shortest warm-up in seconds.", ge=0, le=LONGEST_S)
    # On an H100 a CUDA graph took 2 to 3 % longer than later for 0.6 s (docs/explanation/measurement.md).
    warmup_accelerator_min_s: float = number(
        0.7, "Shortest warm-up on anything but a CPU in seconds, if more than `warmup_min_s`.", ge=0, le=LONGEST_S
    )
    warmup_long_s: float = number(
        0.5,
        "With slow steps, a warm-up of this many seconds is long enough, whatever the number of steps; above "
        "`warmup_max_s` it never counts.",
        gt=0,
        le=LONGEST_S,
    )
    warmup_max_s: float = number(
        30.0, "Longest warm-up in seconds; a trial that reaches it is flagged `warmup_capped`.", gt=0, le=LONGEST_S
    )
    warmup_tolerance: float = number(
        0.02,
        "The warm-up is steady once the medians of its last two quarters, each of at least 20 steps, differ by no more "
        "than this share.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    block_min_s: float = number(
        0.01, "Shortest block in seconds; a block has as many steps as that takes.", gt=0, le=LONGEST_S
    )
    blocks_min: int = number(
        20, "Least number of timed blocks, where `timed_max_s` leaves time for them.", ge=2, le=MOST
    )
    timed_min_s: float = number(0.15, "Shortest sum of timed blocks in seconds.", ge=0, le=LONGEST_S)
    timed_max_s: float = number(
        1.0, "Timing ends after this many seconds, once there are at least two blocks.", gt=0, le=LONGEST_S
    )
    timed_tolerance: float = number(
        0.02,
        "Timing ends before `timed_max_s`, if that is more than `timed_min_s`, once the 95 % interval over 20 batch "
        "medians is within this share to either side.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    latencies_max_s: float = number(
        60.0,
        "Longest run in seconds of a study's `latency_steps` in each of its methods. Fewer are timed where they do "
        "not fit, at least 50; fewer than 72 have no 95th percentile, fewer than 368 no 99th.",
        gt=0,
        le=LONGEST_S,
    )

    def on(self, device: str) -> Effort:
        """The effort on a device: on an accelerator, warm-ups take at least `warmup_accelerator_min_s`."""
        if is_cpu(device):
            return self
        least_s = min(self.warmup_accelerator_min_s, self.warmup_max_s)
        return replace(
            self, warmup_min_s=max(self.warmup_min_s, least_s), warmup_long_s=max(self.warmup_long_s, least_s)
        )


@dataclass(frozen=True)
class Refinement:
    """Measurements beyond the first grid that narrow crossovers down. Defaults: the preset `default`."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    bisections: int = number(
        2,
        "Sizes to add, one after the other, between the two that bracket a crossover, each in the middle on the log "
        "axis; none where its interval is wider than they are apart. 0 for none.",
        ge=0,
        le=20,
    )
    target_width: float = number(
        0.05,
        "Further trials are measured if the crossover's 95 % interval reaches further than this share to either side.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    extra_trials: int = number(
        8,
        "Trials beyond `trials` of the sizes that bracket such a crossover in the end, and of those between them. 0 "
        "for none.",
        ge=0,
        le=MOST_TRIALS,
    )
    pairs: tuple[str, ...] = ("device",)
    """Kinds of comparison whose crossovers are narrowed down; a study with `candidates` adds `best`."""
    first_trials: int = number(
        4,
        "Trials of every size at first. The other `trials` go to the sizes that a crossover depends on, and to those "
        "where it is in doubt which side is ahead.",
        ge=1,
        le=MOST_TRIALS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))  # a file has a list

    def first(self, trials: int) -> int:
        """Trials of every size, where a cell has at most so many."""
        return min(self.first_trials, trials)

    def trials_of_stages(self, trials: int) -> tuple[int, ...]:
        """Number of trials of the sizes at a crossover after each stage that follows the bisections."""
        more = (trials,) if self.first_trials < trials else ()
        return (*more, trials + self.extra_trials) if self.extra_trials else more


@dataclass(frozen=True)
class Preset:
    """A named effort of the config."""

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
    "thorough": Preset(trials=15),
}

CAPS = ("warmup_max_s", "timed_max_s", "latencies_max_s")
"""The smaller value counts, the study's or the run's, so that a study cannot make a short run longer."""

ENDS = (("warmup_min_s", "warmup_max_s"), ("timed_min_s", "timed_max_s"))
"""Minimum and maximum of the same time."""


@dataclass(frozen=True)
class BatchSearch:
    """Limits of a search for the largest batch."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    start: int = number(64, "First batch size to try; sizes double from there.", ge=1, le=MOST)
    limit: int | None = number(None, "Largest batch size to try, or null for none.", ge=1, le=MOST)
    memory_limit: int | str | None = None
    """Bytes, or a number with a unit; None: the script's own choice."""
    timed_batches: int = number(
        100,
        "Most batches of the largest size to time for its throughput, in about 10 s and at least 3. 0 for none.",
        ge=0,
        le=MOST,
    )


@dataclass(frozen=True)
class Quality:
    """Settings of the trainings that compare the quality of models."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    epochs: int = number(1, "Passes over the training part.", ge=1, le=MOST_EPOCHS)
    seeds: int = number(5, "Trainings of each model; an interval needs two.", ge=1, le=MOST_TRIALS)
    test_share: float = number(
        0.33, "Share of the dataset's rows held out of the training, to be predicted.", gt=0, lt=1
    )
    classes: Sequence[str] | None = None
    """Names of the classes, in order; None: their numbers."""


@dataclass(frozen=True)
class Asks:
    """The ratio that a study asks for: two sides, by axis and value, and the metrics to compare."""

    of: Mapping[str, Any]
    over: Mapping[str, Any]
    metrics: Sequence[str]

    @classmethod
    def of_study(cls, study: Mapping[str, Any]) -> Asks | None:
        """The ratio in a study's keys; None if it asks for none."""
        return cls(**study["asks"]) if study.get("asks") else None


@dataclass(frozen=True)
class Candidates:
    """Configurations to add to a study's cells, to compare devices at their best, and those of its own grid."""

    sizes: Sequence[int]
    batch_sizes: Sequence[int]
    executions: Sequence[str]
    precisions: Sequence[str]
    """The accuracy class: candidates of these precisions count as equal, others are no candidates."""
    protocols: Sequence[str]
    cpu_variants: Sequence[str]
    cpu_threads: Sequence[int | str]
    own_executions: Sequence[str]
    own_precisions: Sequence[str]
    own_variants: Sequence[str]
    own_threads: Sequence[int | str]

    @classmethod
    def of(cls, study: Mapping[str, Any]) -> Candidates | None:
        """The candidates in a study's keys; None if it has none. The default accuracy class is its first precision."""
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
        """Whether the study's own grid has cells of this execution, precision, variant and side."""
        threads = threads_of_side(device)
        return (
            execution in self.own_executions
            and precision in self.own_precisions
            and variant in self.own_variants
            and (threads is None or threads in self.own_threads)
        )


@dataclass(frozen=True)
class Cell:
    """One point of a study's grid."""

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
    """The user's model, for workload `model`; a study has a single model, so it is no axis."""

    @property
    def path(self) -> str:
        """The cell's folder under results/cells/, one level per axis."""
        pattern = CELL_PATH if self.machine == HERE else MACHINE_PATH
        return pattern.format(**self.values)

    @property
    def values(self) -> dict[str, Any]:
        """Its value on each axis."""
        return {axis: getattr(self, axis) for axis in AXES}


CELL_PATH = "{study}/{workload}/{variant}/{protocol}/batch-{batch_size}/{precision}/{execution}/size-{size}/{device}"
"""Pattern of a cell's folder; its placeholders are the axes, and the wildcards of the rule that measures."""
MACHINE_PATH = CELL_PATH.replace("/{device}", "/{machine}/{device}")
"""Pattern of a cell's folder where machines have names."""
SEARCH_PATH = CELL_PATH.replace("/batch-{batch_size}", "")
"""Pattern of the path of a search for the largest batch: a cell's without the batch size."""
SEARCH_VERSION = 1
"""Version of the keys in a search's file."""
TRAINING_PATH = f"{CELL_PATH}/seed-{{seed}}"
"""Pattern of the path of a training: its cell's, and the seed."""


@dataclass(frozen=True)
class Study:
    """One question with its grid and protocol; `crossover.config.study_keys.StudyKeys` says what each key means."""

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
    figures: tuple[str, ...] = ("times", "speedups", "machines", "map", "precisions", "time_split", "memory", "energy")
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
        """The points on the x axis; over `cpu_threads` those besides all cores."""
        if self.x_axis == CPU_THREADS:
            return self.cpu_threads
        return self.batch_sizes if self.x_axis == "batch_size" else self.sizes

    def devices_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on."""
        return [device for device in devices if self.devices is None or device in self.devices]

    def sides_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on, the CPU followed by the CPU on fewer cores."""
        fewer = [f"{BASELINE}-{threads}" for threads in self.cpu_threads]
        measured = self.devices_among(devices)
        return [side for device in measured for side in (device, *(fewer if device == BASELINE else ()))]

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
    """The cells that a study's `candidates` add to its grid.

    A CPU has no CUDA graph, and on fewer cores it runs the study's own executions alone; `cpu_variants` are for it
    alone.
    """
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
    """The cells whose models a study trains; loading, execution and threads do not change a model."""
    if study.quality is None:
        return []
    return replace(study, timed=True, protocols=("resident",), executions=("eager",), cpu_threads=()).cells(devices)


def effort_of(study: Study, run: Effort) -> Effort:
    """The effort of a study's trials: the run's, except for the numbers that the study sets."""
    numbers = {key: min(value, getattr(run, key)) if key in CAPS else value for key, value in study.effort.items()}
    return replace(run, **numbers)


def check_any_for(studies: Sequence[Study], devices: Sequence[str]) -> None:
    """Raise UserError if no study measures on any of the run's devices."""
    if not any(study.devices_among(devices) for study in studies):
        wanted = "; ".join(f"{study.name}: {', '.join(study.devices or ())}" for study in studies)
        raise UserError(
            f"studies: none of them is for the devices of this run ({', '.join(devices)}); {wanted}; take another "
            "study, another machine, or edit `devices` in the study's file"
        )


LEAST_OF_MAP = 3


def second_axis(study: Mapping[str, Any]) -> str | None:
    """The second axis of a study, by its keys: the batch size beside sizes, the size beside batch sizes or cores.

    None unless the study has at least LEAST_OF_MAP values on both.
    """
    others = [*study["cpu_threads"], "all"] if study["x_axis"] == CPU_THREADS else study["batch_sizes"]
    if min(len(study["sizes"]), len(others)) < LEAST_OF_MAP:
        return None
    return "batch_size" if X_AXES[study["x_axis"]] == "size" else "size"


CROSSOVER_FIGURES = {"times", "speedups"}
"""Figures that show crossovers of devices; a study without them has none to narrow down."""


def asks_for_crossovers(figures: Collection[str]) -> bool:
    """Whether a study with these figures asks from which size on one device beats another."""
    return not CROSSOVER_FIGURES.isdisjoint(figures)


def steps_of_run(steps_per_run: int | Mapping[str, int] | None, batch_size: int) -> int | None:
    """Steps of a published run at a batch size; the last batch of an epoch may be short."""
    if isinstance(steps_per_run, Mapping):
        return steps_per_run["epochs"] * math.ceil(steps_per_run["samples"] / batch_size)
    return steps_per_run


PREVIEW_SIZES = 5
"""Sizes that a study's first answer needs: both ends, the middle, and the quarters."""


def preview(study: Study) -> Study:
    """The part of a study that its first answer is computed from.

    That is PREVIEW_SIZES evenly spread points of the x axis in the first configuration, or a small study as a whole.
    """
    points = study.points if study.x_axis == CPU_THREADS else tuple(sorted(study.points))
    gaps = PREVIEW_SIZES - 1
    if len(points) <= PREVIEW_SIZES:
        return study
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
    """Yield (trial, cell) round by round, shuffled within each; some cells only once, in the first round.

    Cells that differ in their device alone follow each other, since they are compared. The first round goes study by
    study, and in each begins with the cells in `first`, so that each can be answered soon. The order within a round
    depends on the seed, the round and the cells alone: more trials leave it as it is.
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

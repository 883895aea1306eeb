"""Studies, their cells, and the effort spent on them.

Plain values without dependencies, so that a measuring process can import them for free.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from crossover.config.models import Model
from crossover.config.words import AXES, BASELINE, CUDA_GRAPH, HERE, PLAIN, is_cpu, threads_of_side
from crossover.errors import UserError


@dataclass(frozen=True)
class Effort:
    """How long a trial warms up and measures: seconds, and tolerances as shares. Defaults: the preset `default`.

    Trials are short, since processes differ by more than the steps of one: time is better spent on another process.
    """

    warmup_min_steps: int = 20
    warmup_min_s: float = 0.2
    warmup_accelerator_min_s: float = 0.7
    """On an H100 a CUDA graph took 2 to 3 % longer than later for 0.6 s (docs/explanation/measurement.md)."""
    warmup_long_s: float = 0.5
    warmup_max_s: float = 30.0
    warmup_tolerance: float = 0.02
    block_min_s: float = 0.01
    blocks_min: int = 20
    timed_min_s: float = 0.15
    timed_max_s: float = 1.0
    timed_tolerance: float = 0.02
    latencies_max_s: float = 60.0

    def on(self, device: str) -> Effort:
        """The effort of a trial on a device: no warm-up on an accelerator is shorter than its own least."""
        if is_cpu(device):
            return self
        least_s = min(self.warmup_accelerator_min_s, self.warmup_max_s)
        return replace(
            self, warmup_min_s=max(self.warmup_min_s, least_s), warmup_long_s=max(self.warmup_long_s, least_s)
        )


@dataclass(frozen=True)
class Refinement:
    """What is measured beyond the first grid to narrow crossovers down. Defaults: the preset `default`."""

    bisections: int = 2
    """How often the bracket of a crossover is halved on the log axis."""
    target_width: float = 0.05
    """Half width of the crossover's interval, as a share of it; a wider one asks for further trials."""
    extra_trials: int = 8
    """Trials of the sizes at a crossover beyond the run's, where these leave its interval wider than that."""
    pairs: tuple[str, ...] = ("device",)
    """What is compared where crossovers are narrowed down; a study with `ways` adds `best`."""
    first_trials: int = 4
    """Trials of every size; those of the run go to the sizes that a crossover depends on."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))  # a file has a list

    def first(self, trials: int) -> int:
        """Trials of every size, where a cell has at most so many."""
        return min(self.first_trials, trials)

    def trials_of_stages(self, trials: int) -> tuple[int, ...]:
        """How many trials the sizes at a crossover have after each of the stages that follow the bisections."""
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

LATENCY_STEPS_MIN = 368
"""The fewest of which the 99th percentile has a 95 % interval: 0.99^368 = 0.025 (`crossover.percentiles`)."""

CAPS = ("warmup_max_s", "timed_max_s", "latencies_max_s")
"""The smaller value counts, the study's or the run's, so that a study cannot make a short run longer."""

ENDS = (("warmup_min_s", "warmup_max_s"), ("timed_min_s", "timed_max_s"))
"""Least and most seconds of the same thing."""


@dataclass(frozen=True)
class BatchSearch:
    """Where a search for the largest batch begins and ends; defaults as in config/schema.yaml."""

    start: int = 64
    limit: int | None = None
    memory_limit: int | str | None = None
    """Bytes, or a number with a unit; None: the script's own choice."""
    timed_batches: int = 100
    """Most batches of the largest size to time; 0: none."""


@dataclass(frozen=True)
class Quality:
    """How models are trained to compare their quality; defaults as in config/schema.yaml."""

    epochs: int = 1
    seeds: int = 5
    test_share: float = 0.33
    classes: Sequence[str] | None = None
    """Names of the classes, in order; None: their numbers."""


@dataclass(frozen=True)
class Asks:
    """Two sides of a study's cells, by axis and value, and the metrics in which it asks for their ratio."""

    of: Mapping[str, Any]
    over: Mapping[str, Any]
    metrics: Sequence[str]

    @classmethod
    def of_study(cls, study: Mapping[str, Any]) -> Asks | None:
        """Those of a study's keys; None if it asks for no ratio, as no study of an earlier version does."""
        return cls(**study["asks"]) if study.get("asks") else None


@dataclass(frozen=True)
class Ways:
    """Further ways to compute a study's cells, for devices at their best, and what its own grid holds of them."""

    sizes: Sequence[int]
    executions: Sequence[str]
    precisions: Sequence[str]
    """The accuracy class: ways of these precisions count as equal, others are no ways."""
    protocols: Sequence[str]
    cpu_threads: Sequence[int | str]
    own_executions: Sequence[str]
    own_precisions: Sequence[str]
    own_threads: Sequence[int | str]

    @classmethod
    def of(cls, study: Mapping[str, Any]) -> Ways | None:
        """Those of a study's keys; None if it names none. Without precisions, its first one is the class."""
        if not study.get("ways"):
            return None
        asked = study["ways"]
        return cls(
            sizes=asked["sizes"],
            executions=asked.get("executions", ()),
            precisions=asked.get("precisions") or study["precisions"][:1],
            protocols=asked.get("protocols") or study["protocols"],
            cpu_threads=asked.get("cpu_threads", ()),
            own_executions=study["executions"],
            own_precisions=study["precisions"],
            own_threads=study["cpu_threads"],
        )

    def has_own(self, execution: str, precision: str, device: str) -> bool:
        """Whether the study's own grid has cells of this execution, precision and side."""
        threads = threads_of_side(device)
        return (
            execution in self.own_executions
            and precision in self.own_precisions
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
    """The user's own, for workload `model`; a study has one, so it is no axis."""

    @property
    def path(self) -> str:
        """The cell's folder under results/cells/, one level per axis."""
        pattern = CELL_PATH if self.machine == HERE else MACHINE_PATH
        return pattern.format(**self.values)

    @property
    def values(self) -> dict[str, Any]:
        """What names it: its value on each axis."""
        return {axis: getattr(self, axis) for axis in AXES}


CELL_PATH = "{study}/{workload}/{variant}/{protocol}/batch-{batch_size}/{precision}/{execution}/size-{size}/{device}"
"""Pattern of a cell's folder; its placeholders are the axes, and the wildcards of the rule that measures."""
MACHINE_PATH = CELL_PATH.replace("/{device}", "/{machine}/{device}")
"""The same where machines have names."""
SEARCH_PATH = CELL_PATH.replace("/batch-{batch_size}", "")
"""Pattern of the path of a search for the largest batch: a cell's without the batch size."""
SEARCH_VERSION = 1
"""Version of the keys in a search's file."""
TRAINING_PATH = f"{CELL_PATH}/seed-{{seed}}"
"""Pattern of the path of a training: its cell's, and the seed."""


@dataclass(frozen=True)
class Study:
    """One question with its grid and protocol, from one file in config/studies/."""

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
    """The only devices to measure on; None: all of the run's."""
    cpu_threads: tuple[int | str, ...] = ()
    """Fewer cores to time the CPU on as well."""
    x_axis: str = "size"
    figures: tuple[str, ...] = ("times", "speedups", "precisions", "time_split", "memory", "energy")
    effort: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the run's effort."""
    trials: int | None = None
    """Fewer trials of each cell than the run's; None: the run's."""
    refinement: Mapping[str, Any] | None = field(default_factory=dict)
    """What differs from the run's refinement; None: no refinement."""
    ways: Mapping[str, Any] | None = None
    """Further ways to compute its cells, so that each device is compared at its best; None: none."""
    time_limit_s: float | None = None
    """None: the run's."""
    mem_mb: int | None = None
    """Megabytes that its jobs ask a cluster for; None: what follows from the model and its table."""
    latency_steps: int = 0
    latency_mistakes: bool = False
    largest_batch: bool = False
    """Whether the run also searches for the largest batch of each line."""
    asks: Mapping[str, Any] | None = None
    """Two sides of its cells, `of` and `over`, and the `metrics` in which the study asks for their ratio."""
    steps_per_run: int | Mapping[str, int] | None = None
    published: Mapping[str, Any] | None = None
    claims: tuple[Mapping[str, Any], ...] = ()
    timed: bool = True
    quality: Mapping[str, Any] | None = None
    model: Model | None = None
    """A model of the user's own, for workload `model`."""

    def devices_among(self, devices: Sequence[str]) -> list[str]:
        """The run's devices that the study measures on."""
        return [device for device in devices if self.devices is None or device in self.devices]

    def sides_among(self, devices: Sequence[str]) -> list[str]:
        """The same with the CPU sides that the study asks for, after the CPU."""
        fewer = [f"{BASELINE}-{threads}" for threads in self.cpu_threads]
        own = self.devices_among(devices)
        return [side for device in own for side in (device, *(fewer if device == BASELINE else ()))]

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


def cells_of_ways(study: Study, devices: Sequence[str]) -> list[Cell]:
    """The cells that a study's `ways` add to its grid.

    A CPU has no CUDA graph, and on fewer cores it runs the study's own executions alone.
    """
    ways = Ways.of(vars(study))
    if ways is None:
        return []
    widened = replace(
        study,
        sizes=tuple(ways.sizes),
        protocols=tuple(ways.protocols),
        precisions=tuple(ways.precisions),
        executions=tuple(dict.fromkeys([*study.executions, *ways.executions])),
        cpu_threads=tuple(dict.fromkeys([*study.cpu_threads, *ways.cpu_threads])),
    )
    own = {*study.cells(devices)}
    return [
        cell
        for cell in widened.cells(devices)
        if cell not in own
        and not (cell.execution == CUDA_GRAPH and is_cpu(cell.device))
        and (threads_of_side(cell.device) is None or cell.execution in study.executions)
    ]


def quality_of(study: Study) -> Quality | None:
    """How a study trains models; None if it trains none."""
    return None if study.quality is None else Quality(**study.quality)


def trained_cells(study: Study, devices: Sequence[str]) -> list[Cell]:
    """The cells whose models a study trains; loading, execution and threads do not change a model."""
    if study.quality is None:
        return []
    return replace(study, timed=True, protocols=("resident",), executions=("eager",), cpu_threads=()).cells(devices)


def effort_of(study: Study, run: Effort) -> Effort:
    """The effort of a study's trials: the run's, with the study's own numbers in place of it."""

    def counting(key: str) -> Any:
        value = type(getattr(run, key))(study.effort[key])
        return min(value, getattr(run, key)) if key in CAPS else value

    return replace(run, **{key: counting(key) for key in study.effort})


def check_any_for(studies: Sequence[Study], devices: Sequence[str]) -> None:
    """Raise UserError if no study measures on any of the run's devices."""
    if not any(study.devices_among(devices) for study in studies):
        wanted = "; ".join(f"{study.name}: {', '.join(study.devices or ())}" for study in studies)
        raise UserError(
            f"studies: none of them is for the devices of this run ({', '.join(devices)}); {wanted}; take another "
            "study, another machine, or edit `devices` in the study's file"
        )


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
    """The part of a study that its first answer is given from.

    Of many sizes these are a few, evenly spread, in the first of the study's ways; a study of few sizes is taken whole.
    """
    sizes, gaps = sorted(study.sizes), PREVIEW_SIZES - 1
    if len(sizes) <= PREVIEW_SIZES:
        return study
    return replace(
        study,
        sizes=tuple(sizes[round(number * (len(sizes) - 1) / gaps)] for number in range(PREVIEW_SIZES)),
        batch_sizes=study.batch_sizes[:1],
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
        places: dict[Cell, int] = {}
        for place, cell in enumerate(order):
            places.setdefault(replace(cell, device=""), place)
        order.sort(key=lambda cell: places[replace(cell, device="")])
        if trial == 1:
            order.sort(key=lambda cell: (studies.index(cell.study), cell not in first))
        for cell in order:
            yield trial, cell

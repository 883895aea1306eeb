"""Studies and their cells: the config becomes the table of trials.

Plain values without dependencies, so that the measuring process can import them for free.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from crossover.config.traits import FUNCTIONS, Traits, read_traits
from crossover.config.words import AXES, BASELINE, HERE, PLAIN
from crossover.errors import UserError

WORKLOADS_FOLDER = Path(__file__).parents[1] / "measurement" / "workloads"
NULL = "null"
"""The workload that does nothing and needs no torch."""


@dataclass(frozen=True)
class Effort:
    """How long a trial warms up and measures. Seconds, and tolerances as shares; defaults as in config/schema.yaml."""

    warmup_min_steps: int = 50
    warmup_min_s: float = 1.0
    warmup_long_s: float = 5.0
    warmup_max_s: float = 30.0
    warmup_tolerance: float = 0.02
    block_min_s: float = 0.02
    blocks_min: int = 30
    timed_min_s: float = 2.0
    timed_max_s: float = 3.0
    timed_tolerance: float = 0.02


@dataclass(frozen=True)
class BatchSearch:
    """Where a search for the largest batch begins and ends; defaults as in config/schema.yaml."""

    start: int = 64
    limit: int | None = None
    memory_limit: int | str | None = None
    """Bytes, or a number with a unit; None: what the script takes by itself."""
    timed_batches: int = 100
    """Batches of the largest size to time, at most; 0: none."""


@dataclass(frozen=True)
class Refinement:
    """What is measured beyond the first grid to narrow a crossover down; defaults as in config/schema.yaml."""

    bisections: int = 2
    """Times that the bracket of a crossover is halved on the log axis."""
    target_width: float = 0.10
    """Half width of the crossover's interval as a share of the crossover; a wider one asks for further trials."""
    extra_trials: int = 3
    """Most further trials of a cell."""
    pairs: tuple[str, ...] = ("device",)
    """What is compared where crossovers are narrowed down."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))  # a file's is a list


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

    @property
    def path(self) -> str:
        """The cell's folder under results/cells/, one level per axis."""
        pattern = CELL_PATH if self.machine == HERE else MACHINE_PATH
        return pattern.format(**{axis: getattr(self, axis) for axis in AXES})


CELL_PATH = "{study}/{workload}/{variant}/{protocol}/batch-{batch_size}/{precision}/{execution}/size-{size}/{device}"
"""Pattern of a cell's folder; its placeholders are the axes, and the wildcards of the rule that measures."""
MACHINE_PATH = CELL_PATH.replace("/{device}", "/{machine}/{device}")
"""The same where machines are named."""

SEARCH_PATH = CELL_PATH.replace("/batch-{batch_size}", "")
"""Pattern of the path of a search for the largest batch: a cell's without the batch size."""
SEARCH_VERSION = 1
"""Version of the keys of a search's file."""


def known_workloads() -> list[str]:
    """Names of the workloads: the public modules of the workloads' folder, of which a dot would make packages."""
    return sorted(path.stem for path in WORKLOADS_FOLDER.glob("[!_]*.py") if "." not in path.stem)


def workload_module(workload: str) -> Path:
    """The module that defines a workload."""
    return WORKLOADS_FOLDER / f"{workload}.py"


@cache
def workload_traits(workload: str) -> Traits:
    """What a workload's module says of itself; raises UserError as `read_traits` does."""
    return read_traits(workload_module(workload), {} if workload == NULL else FUNCTIONS)


def trains(workload: str) -> bool:
    """Whether a workload trains on resident data with labels."""
    traits = workload_traits(workload)
    return traits.dataset is not None and "resident" in traits.protocols


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
    figures: tuple[str, ...] = ("times", "speedups", "precisions", "host_share", "memory", "energy")
    effort: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the run's effort."""
    refinement: Mapping[str, Any] | None = field(default_factory=dict)
    """What differs from the run's refinement; None: no refinement."""
    time_limit_s: float | None = None
    """None: the run's own."""
    latency_steps: int = 0
    latency_mistakes: bool = False
    largest_batch: bool = False
    """Whether the run also searches the largest batch of each line."""
    steps_per_run: int | Mapping[str, int] | None = None
    published: Mapping[str, Any] | None = None
    claims: tuple[Mapping[str, Any], ...] = ()
    timed: bool = True
    quality: Mapping[str, Any] | None = None

    def devices_among(self, devices: Sequence[str]) -> list[str]:
        """Those of the run's devices that the study is for."""
        return [device for device in devices if self.devices is None or device in self.devices]

    def sides_among(self, devices: Sequence[str]) -> list[str]:
        """The same, and the CPU sides that the study asks for, after the CPU."""
        fewer = [f"{BASELINE}-{threads}" for threads in self.cpu_threads]
        own = self.devices_among(devices)
        return [side for device in own for side in (device, *(fewer if device == BASELINE else ()))]

    def cells(self, devices: Sequence[str]) -> list[Cell]:
        """The study's grid on those of the given devices that it is for; none where it times nothing."""
        axes = (self.variants, self.protocols, self.batch_sizes, self.precisions, self.executions, self.sizes)
        grid = product(*axes, self.sides_among(devices) if self.timed else ())
        return [
            Cell(self.name, self.workload, protocol, batch_size, precision, execution, size, device, variant)
            for variant, protocol, batch_size, precision, execution, size, device in grid
        ]


def check_any_for(studies: Sequence[Study], devices: Sequence[str]) -> None:
    """Raise UserError where no study is for any of the run's devices, so that there would be nothing to do."""
    if not any(study.devices_among(devices) for study in studies):
        wanted = "; ".join(f"{study.name}: {', '.join(study.devices or ())}" for study in studies)
        raise UserError(
            f"studies: none of them is for the devices of this run ({', '.join(devices)}); {wanted}; take another "
            "study, another machine, or edit `devices` in the study's file"
        )


def steps_of_run(steps_per_run: int | Mapping[str, int] | None, batch_size: int) -> int | None:
    """Steps of a published run at a batch size; given by its epochs, the last batch of each may be short."""
    if isinstance(steps_per_run, Mapping):
        return steps_per_run["epochs"] * math.ceil(steps_per_run["samples"] / batch_size)
    return steps_per_run


def check_offered(workload: str, asked: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """Raise UserError where a workload does not offer a size, batch size, protocol or variant that is asked for.

    Both mappings are by axis: the value, and the option or the key of a file that it comes from. A batch size without a
    key is not looked at.
    """
    traits = workload_traits(workload)
    low, high = traits.size_range
    size = asked["size"]
    if not low <= size <= high or size not in (traits.sizes or (size,)) or size % traits.granularity:
        multiples = f", multiples of {traits.granularity}" if traits.granularity > 1 else ""
        allowed = f"from {low} to {high}{multiples}" if traits.sizes is None else ", ".join(map(str, traits.sizes))
        raise UserError(
            f"{keys['size']}: {size} is not offered by workload '{workload}'; allowed: {traits.size_name} {allowed}"
        )
    batch_sizes = traits.batch_sizes if "batch_size" in keys else None
    for axis, offered in (("batch_size", batch_sizes), ("protocol", traits.protocols), ("variant", traits.variants)):
        if offered is not None and asked[axis] not in offered:
            raise UserError(
                f"{keys[axis]}: {asked[axis]!r} is not offered by workload '{workload}'; "
                f"allowed: {', '.join(map(str, offered))}"
            )


def in_rounds(cells: Sequence[Cell], trials: int, seed: int) -> Iterator[tuple[int, Cell]]:
    """Yield (trial, cell) so that trial 1 of all cells comes before trial 2 of any, shuffled within a round.

    The order of a round depends on the seed, the round and the cells alone: more trials leave it as it is.
    """
    for trial in range(1, trials + 1):
        order = sorted(cells, key=lambda cell: cell.path)
        random.Random(f"{seed}/{trial}").shuffle(order)
        for cell in order:
            yield trial, cell

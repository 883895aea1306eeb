"""Cells, and the numbers that a config sets: effort, refinement, search for the largest batch.

Plain values without dependencies, which a measuring process can import quickly. `crossover.config.study` has the rest.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar

from crossover.config.models import Model
from crossover.config.words import AXES, EXECUTIONS, HERE, PLAIN, is_cpu

MOST = 1_000_000_000
MOST_SEED = 2_000_000_000
"""Largest seed in a config. Each trial adds its number, and some generators accept only 32 bits."""
MOST_THREADS = 4096
MOST_TRIALS = 1000
MOST_EPOCHS = 1_000_000
MOST_TOLERANCE = 100
LONGEST_S = 1_000_000
MOST_GB = 1_000_000
LATENCY_STEPS_MIN = 368
"""Minimum number of steps for a 95 % interval of the 99th percentile: 0.99^368 = 0.025 (`crossover.percentiles`)."""
LATENCY_TURN_STEPS = 10
"""Maximum number of steps timed in a row while methods of measuring latency take turns. A host's speed changes within
tenths of a second: of EfficientNet's latencies on an H200 host, 100 in turns of 50 differ from the 100 between them by
6 % (standard deviation), in turns of 10 by 2.4 %."""
LATENCY_STEPS_MAX = 1_000_000
"""Maximum number of steps, since all latencies of a trial are stored in one row."""

CHECKED = {"extra": "forbid", "allow_inf_nan": False}
"""Settings for pydantic, which checks the keys of a config against these dataclasses."""

Number = TypeVar("Number", int, float, int | None, float | None)


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
    warmup_eager_min_s: float = number(
        0.3, "The same for eager steps on an accelerator, if less than `warmup_accelerator_min_s`.", ge=0, le=LONGEST_S
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

    def on(self, device: str, execution: str) -> Effort:
        """The effort on a device; an accelerator has a longer minimum warm-up, up to `warmup_max_s`."""
        if is_cpu(device):
            return self
        min_s = min(self.warmup_accelerator_min_s, self.warmup_max_s)
        if execution == EXECUTIONS[0]:
            min_s = min(min_s, self.warmup_eager_min_s)
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
        0.1,
        "Further trials are measured if the crossover's 95 % interval is wider than ± this share of the crossover. "
        "With `minutes`, the default is 0.05.",
        gt=0,
        le=MOST_TOLERANCE,
    )
    extra_trials: int = number(
        4,
        "Trials in addition to `trials`, at the sizes within and at the ends of the final bracket, if the crossover's "
        "interval is still wider than `target_width`.",
        ge=0,
        le=MOST_TRIALS,
    )
    pairs: tuple[Literal["device", "gpus", "precision", "execution", "variant", "plane"], ...] = field(
        default=("device", "gpus"),
        metadata={
            "min_length": 1,
            "description": "Which crossovers in time to narrow down: `device`, each accelerator and the CPU; "
            "`gpus`, several GPUs and fewer; `precision`, fp32 (or else the first that the study lists) and each "
            "other precision on one device; `execution`, eager (or else the first) and each other execution on one "
            "device; `variant`, the study's first variant and each other one on one device. `plane`, in a study over "
            "sizes and batch sizes: the regions of both in which a device is certified faster.",
        },
    )
    doublings: int = number(
        0,
        "Further stages, each of which doubles the number of trials at the sizes within and at the ends of the bracket "
        "of a crossover whose interval is still wider than `target_width`. With `minutes`, the default is 6.",
        ge=0,
        le=10,
    )
    first_trials: int = number(
        3,
        "Number of initial trials of every size. The remaining `trials` go to the sizes on which a crossover depends, "
        "to those where the faster side is undecided, and to the cells of inconclusive claims about ratios.",
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

    def trials_at_crossover(self, trials: int) -> tuple[int, ...]:
        """Like `trials_of_stages`, with the stages of `doublings`, which only crossovers have."""
        stages = self.trials_of_stages(trials)
        most = max(stages, default=self.first(trials))
        return (*stages, *(most * 2**number for number in range(1, self.doublings + 1)))


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
    "thorough": Preset(trials=15, refinement=Refinement(first_trials=5, extra_trials=8)),
}

CAPS = ("warmup_max_s", "timed_max_s", "latencies_max_s")
"""Numbers of the effort that a study can only lower, so that a short run stays short."""

ENDS = (("warmup_min_s", "warmup_max_s"), ("timed_min_s", "timed_max_s"))
"""Pairs of keys for the minimum and the maximum of the same time."""


@dataclass(frozen=True)
class BatchSearch:
    """Numbers of a search for the largest batch."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = CHECKED
    start: int = number(64, "First batch size to try; sizes double from there.", ge=1, le=MOST)
    limit: int | None = number(None, "Largest batch size to try, or null for no limit.", ge=1, le=MOST)
    timed_batches: int = number(
        100,
        "Maximum number of batches of the largest size to time for its throughput; 0 for none. Timing ends after about "
        "10 s, but not before 3 batches.",
        ge=0,
        le=MOST,
    )
    memory_limit_gb: float | None = number(
        None,
        "Memory that a cell may use, in GB (10^9 bytes). Null allows 80 % of the available memory on the CPU, and all "
        "memory of other devices.",
        gt=0,
        le=MOST_GB,
    )


@dataclass(frozen=True)
class Cell:
    """A configuration to measure: a value on each axis."""

    study: str
    workload: str
    protocol: str
    batch_size: int = field(metadata={"ge": 1})
    precision: str
    execution: str
    size: int = field(metadata={"ge": 1})
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
SEARCH_VERSION = 1
"""Version of the keys in a search's file."""

RESULTS = {
    "trial": f"cells/{CELL_PATH}/trial-{{trial}}{{again}}.parquet",
    "training": f"trainings/{CELL_PATH}/seed-{{seed}}.parquet",
    "batch_try": f"largest_batch/{CELL_PATH.replace('/batch-{batch_size}', '')}.json",
    "probe": "roofs/{device}.json",
}
"""Pattern of the path of a kind of job's result, relative to the results folder; classes of nodes add a level."""

SPECIAL = {"batch_size": r"\d+", "size": r"\d+", "trial": r"\d+", "seed": r"\d+", "again": r"(?:-repeat-\d+)?"}
"""The wildcards of RESULTS that are not simply the name of a folder."""


@cache
def path_of_result(kind: str) -> re.Pattern[str]:
    """The regular expression of the paths of a kind of job's results, with a group for each wildcard."""
    pattern = re.escape(RESULTS[kind]).replace(r"/\{device\}", r"/(?:(?P<machine>[^/]+)/)?\{device\}")
    return re.compile(
        re.sub(r"\\\{(\w+)\\\}", lambda match: f"(?P<{match[1]}>{SPECIAL.get(match[1], '[^/]+')})", pattern)
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

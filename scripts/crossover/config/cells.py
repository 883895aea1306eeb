"""A cell and the effort of its trials, which measuring needs.

Plain values without dependencies, which a measuring process can import quickly. A change makes every trial stale, so
what measures nothing (studies, figures, claims, words of answers) is in other modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from crossover.config.models import Model
from crossover.config.words import AXES, HERE, PLAIN, is_cpu

MOST = 1_000_000_000
MOST_TOLERANCE = 100
LONGEST_S = 1_000_000
SEARCH_VERSION = 1
"""Version of the keys in a search's file."""

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

"""Kinds, statuses and caveats of answers, and columns that several kinds share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from crossover.claims.findings import VERDICTS
from crossover.config.statuses import DISTURBED, FLAGS
from crossover.config.words import BASELINE_SETTINGS, PLAIN
from crossover.statistics.intervals import (
    EQUIVALENT,
    FASTER,
    INCONCLUSIVE,
    SINGLE_TRIAL,
    SLOWER,
    Interval,
    compared,
)
from crossover.tables.registry import CAVEATS as CROSSOVER_CAVEATS
from crossover.tables.registry import CROSSOVER_STATUSES

Row = dict[str, Any]
"""An answer: values by column of table `answers` (`crossover.tables.registry.ANSWERS`); omitted columns are empty."""

BASELINE_AXES = {**BASELINE_SETTINGS, "variant": PLAIN}
"""The axes of a device's plainest cells."""

COMPARED = (FASTER, INCONCLUSIVE, SINGLE_TRIAL)
"""Statuses of a comparison that names the faster side first."""

KINDS = {
    "asked": (*COMPARED, EQUIVALENT, "better", "worse"),
    "crossover": tuple(CROSSOVER_STATUSES),
    "best": tuple(CROSSOVER_STATUSES),
    "reference": tuple(CROSSOVER_STATUSES),
    "elsewhere": COMPARED,
    "bound": ("measured",),
    "payback": ("measured",),
    "ranking": ("throughout", "changes", "in_part", INCONCLUSIVE),
    "set_up": ("measured",),
    "transfers": ("differ", INCONCLUSIVE, SINGLE_TRIAL),
    **dict.fromkeys(("loading", "copying"), ("bounds", FASTER, SLOWER, INCONCLUSIVE, SINGLE_TRIAL)),
    "ratio": COMPARED,
    "latency": ("error", "none_found", SINGLE_TRIAL),
    "throughput": ("best", INCONCLUSIVE, SINGLE_TRIAL),
    "setting": COMPARED,
    "step_time": ("measured",),
    "bottleneck": ("throughout", "up_to", "not_found", "hidden"),
    "memory": ("limit", "nearly_full", "no_limit", "unknown_capacity"),
    "memory_setting": ("better", EQUIVALENT),
    "largest_batch": ("fits", "all_fit", "none_fits", "stopped", "not_found"),
    "quality": (
        *("better", "worse", "both", EQUIVALENT, INCONCLUSIVE, SINGLE_TRIAL),
        *("only_cpu", "no_baseline", "nothing_learnt"),
    ),
    "idle_size": ("measured",),
    "claim": tuple(VERDICTS),
    "missing": ("other_devices", "not_measured", "no_result", "not_both", "see_figures"),
}
"""Kinds of answers with their statuses; report/words.j2 has the wording."""

DOUBTFUL = ("above_roof", "diverged", "not_checked", "cast")
VARIABLE = ("trials_differ", "drift", "unlike_blocks", "warmup_capped", "no_turn", "incomplete")

CAVEATS = {
    "busy_machine": "others disturbed most of the cells of one of its sides, so the answer says so first",
    **{flag: FLAGS[flag] for flag in (*DISTURBED, *DOUBTFUL)},
    "one_trial": "based on a cell with only one trial",
    "no_interval": "without a 95 % interval",
    "lost_cells": "some cells of its series have no result",
    **CROSSOVER_CAVEATS,
    **{flag: FLAGS[flag] for flag in VARIABLE},
}
"""Reasons to trust an answer less, the most important first. A sentence has only the first one."""

FLAGGED_SHARE = 0.25
"""Minimum share of an answer's cells with a flag for which the flag is a caveat of the answer. Otherwise an answer that
is based on many cells would have a caveat more often."""


def by_importance(caveats: Collection[str]) -> list[str]:
    """Each caveat once, in the order of CAVEATS."""
    return [caveat for caveat in CAVEATS if caveat in caveats]


BUSY = frozenset(DISTURBED) - {"throttled"}
"""Flags of cells that others disturbed."""


def estimate(row: Mapping[str, Any], name: str, unit: str = "") -> Row:
    """Value, 95 % interval and unit of an answer, from column `name` of a row."""
    return {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"], "unit": unit or None}


def interval_columns(interval: Interval, unit: str) -> Row:
    return {"value": interval.mean, "low": interval.low, "high": interval.high, "unit": unit}


def ratio_columns(ratio: Interval) -> Row:
    status = compared(ratio)
    return {"status": status, "detectable": detectable(ratio, status), **interval_columns(ratio, "times")}


def detectable(ratio: Interval, status: str) -> float | None:
    """The largest difference, as a share, that an inconclusive comparison allows."""
    if status != INCONCLUSIVE or ratio.low is None or ratio.high is None:
        return None
    return max(ratio.high, 1 / ratio.low) - 1


def trials_columns(trials: int) -> Row:
    """Column `trials`, the smallest number of trials per cell, and `caveats`: `one_trial` if it is 1."""
    return {"trials": trials, "caveats": ["one_trial"] if trials == 1 else []}


def flags_of(cells: pd.DataFrame) -> list[str]:
    """`busy_machine` if others disturbed the cells, and the flags that at least FLAGGED_SHARE of them have."""
    flags_of_cells = list(cells["flag_names"])
    counts = Counter(flag for flags in flags_of_cells for flag in flags)
    busy = ["busy_machine"] if _is_busy(cells) else []
    return busy + sorted(flag for flag, count in counts.items() if count / len(flags_of_cells) >= FLAGGED_SHARE)


def with_flags(columns: Row, cells: pd.DataFrame) -> Row:
    """Columns of an answer whose caveats are followed by the flags of the cells that it rests on."""
    return {**columns, "caveats": [*columns["caveats"], *flags_of(cells)]}


def _is_busy(cells: pd.DataFrame) -> bool:
    """Whether others disturbed most of the cells of a device of a machine."""
    cells_of, busy_of = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for machine, device, flags in zip(cells["machine"], cells["device"], cells["flag_names"], strict=True):
        cells_of[machine, device] += 1
        busy_of[machine, device] += not BUSY.isdisjoint(flags)
    return any(busy_of[side] > 0.5 * count for side, count in cells_of.items())


def caveats_of(cells: pd.DataFrame) -> list[str]:
    """Caveats of an answer based on these cells: a single trial, and the cells' flags."""
    return [*(["one_trial"] if (cells["trials"] == 1).any() else []), *flags_of(cells)]

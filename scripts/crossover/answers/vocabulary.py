"""The fixed vocabulary of answers, and columns shared by several kinds (`crossover.tables.registry.ANSWERS`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.claims.findings import VERDICTS
from crossover.config.words import FLAGS
from crossover.statistics.intervals import EQUIVALENT, FASTER, INCONCLUSIVE, SINGLE_TRIAL, Interval, compared
from crossover.tables.registry import CAVEATS as CROSSOVER_DOUBTS
from crossover.tables.registry import CROSSOVER_STATUSES

Row = dict[str, Any]
"""An answer, by the columns of table `answers`; missing columns are empty."""

COMPARED = (FASTER, INCONCLUSIVE, SINGLE_TRIAL)
"""How the faster side compares with the slower side."""

KINDS = {
    "asked": (*COMPARED, EQUIVALENT, "more", "less"),
    "crossover": tuple(CROSSOVER_STATUSES),
    "best": tuple(CROSSOVER_STATUSES),
    "reference": tuple(CROSSOVER_STATUSES),
    "bound": ("measured",),
    "payback": ("measured",),
    "ranking": ("throughout", "changes", "in_part", "undecided"),
    "set_up": ("measured",),
    "transfers": ("differ", INCONCLUSIVE, SINGLE_TRIAL),
    **dict.fromkeys(("loading", "copying"), ("bounds", "slows", "no_slowdown", INCONCLUSIVE, SINGLE_TRIAL)),
    "ratio": COMPARED,
    "latency": ("error", "none_found"),
    "throughput": ("best", INCONCLUSIVE, SINGLE_TRIAL),
    "setting": COMPARED,
    "step_time": ("measured",),
    "bottleneck": ("throughout", "up_to"),
    "memory": ("limit", "nearly_full", "no_limit", "unknown_capacity"),
    "memory_setting": ("differ", "alike"),
    "largest_batch": ("fits", "all_fit", "none_fits", "stopped", "not_found"),
    "quality": (
        *("better", "worse", "both", EQUIVALENT, INCONCLUSIVE, SINGLE_TRIAL),
        *("only_cpu", "no_baseline", "nothing_learnt"),
    ),
    "claim": tuple(VERDICTS),
    "missing": ("other_devices", "not_measured", "no_result", "not_both", "see_figures"),
}
"""The kinds of answers with their statuses; report/words.j2 puts them into words."""

CAVEATS = {
    "one_trial": "based on a cell with only one trial",
    "no_interval": "without a 95 % interval",
    "lost_cells": "some cells of its series have no result",
    **CROSSOVER_DOUBTS,
    **FLAGS,
}
"""Why an answer deserves less trust."""


def estimate(row: Mapping[str, Any], name: str, unit: str = "") -> Row:
    """The value of a column, the ends of its 95 % interval, and its unit."""
    return {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"], "unit": unit or None}


def interval_columns(interval: Interval, unit: str) -> Row:
    """The value of an answer, its 95 % interval and its unit."""
    return {"value": interval.mean, "low": interval.low, "high": interval.high, "unit": unit}


def ratio_columns(ratio: Interval) -> Row:
    """The speed-up of the side that is ahead, with its interval and the conclusion from it."""
    return {"status": compared(ratio), **interval_columns(ratio, "times")}


def trials_columns(trials: int) -> Row:
    """Columns `trials`, the smallest number of trials of its cells, and `caveats`, with `one_trial` if that is 1."""
    return {"trials": trials, "caveats": ["one_trial"] if trials == 1 else []}


def flags_of(cells: pd.DataFrame) -> list[str]:
    """The flags of some cells, sorted."""
    return sorted(set(cells["flags"].explode().dropna()))


def caveats_of(cells: pd.DataFrame) -> list[str]:
    """The caveats of an answer based on some cells: a single trial, and the cells' flags."""
    return [*(["one_trial"] if (cells["trials"] == 1).any() else []), *flags_of(cells)]

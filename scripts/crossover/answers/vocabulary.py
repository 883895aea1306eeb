"""The closed sets of words that an answer is made of; the columns of its row are in the registry of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crossover.claims.findings import VERDICTS
from crossover.config.words import FLAGS
from crossover.tables.registry import CORES_STATUSES, CROSSOVER_STATUSES
from crossover.tables.registry import DOUBTS as CROSSOVER_DOUBTS

Row = dict[str, Any]
"""An answer, by the columns of table `answers`; what is left out is empty."""

COMPARED = ("apart", "tie", "indicative")
"""How two sides compare: told apart, not told apart, or known from one trial of a side only."""

KINDS = {
    "asked": COMPARED,
    "crossover": tuple(CROSSOVER_STATUSES),
    "best": tuple(CROSSOVER_STATUSES),
    "reference": tuple(CROSSOVER_STATUSES),
    "set_up": ("measured",),
    "transfers": COMPARED,
    "loading": ("bounds", "slows", "uncertain", "no_slowdown"),
    "ratio": COMPARED,
    "latency": ("error", "none_found"),
    "throughput": ("best", "tie", "indicative"),
    "setting": COMPARED,
    "step_time": ("measured",),
    "cores": tuple(CORES_STATUSES),
    "bottleneck": ("throughout", "up_to"),
    "memory": ("limit", "nearly_full", "no_limit", "unknown_capacity"),
    "memory_setting": ("differ", "alike"),
    "largest_batch": ("fits", "all_fit", "none_fits", "stopped", "not_found"),
    "quality": (
        *("better", "worse", "both", "equivalent", "inconclusive", "single_trial"),
        *("only_cpu", "no_baseline", "nothing_learnt"),
    ),
    "claim": tuple(VERDICTS),
    "missing": ("other_devices", "not_measured", "no_result", "not_both", "see_figures"),
}
"""What an answer can be, each with its statuses; report/words.j2 puts them into words."""

DOUBTS = {
    "one_trial": "a cell that gives it has one trial only",
    "no_interval": "no 95 % interval can be given",
    "lost_cells": "cells of its line have no result",
    **CROSSOVER_DOUBTS,
    **FLAGS,
}
"""Why an answer deserves less trust."""


def estimate(row: Mapping[str, Any], name: str, unit: str = "") -> Row:
    """The value of a column, the ends of its 95 % interval, and its unit."""
    return {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"], "unit": unit or None}


def compared(low: float | None, high: float | None) -> str:
    """One of COMPARED, by the 95 % interval of a ratio."""
    if low is None or high is None:
        return "indicative"
    return "tie" if low <= 1 <= high else "apart"


def doubts_of(cells: pd.DataFrame) -> list[str]:
    """What the cells that give an answer leave in doubt: a single trial, and their flags."""
    flags = sorted({flag for own in cells["flags"] for flag in own})
    return ["one_trial", *flags] if (cells["trials"] == 1).any() else flags

"""Caveats of answers, and what several kinds of answers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import pandas as pd

from crossover.compare.intervals import INCONCLUSIVE, Interval, columns_of, compared
from crossover.config.statuses import DISTURBED, FLAGS
from crossover.config.words import BASELINE_SETTINGS, PLAIN
from crossover.tables.registry import CAVEATS as CROSSOVER_CAVEATS

BASELINE_AXES = {**BASELINE_SETTINGS, "variant": PLAIN}
"""The axes of a device's plainest cells."""

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

CAVEAT_WORDS = {
    "busy_machine": "busy machine",
    "throttled": "GPU clocked down",
    "busy_host": "busy machine",
    "steal": "CPU time taken by other hosts",
    "shared_gpu": "GPU shared with others",
    "side_by_side": "beside trials on other GPUs",
    "quota": "held back by a CPU quota",
    "above_roof": "faster than the device's roofs",
    "diverged": "numbers overflowed",
    "not_checked": "result not checked",
    "cast": "model built in another precision",
    "one_trial": "single trial",
    "lost_cells": "some of its cells have no result",
    "trials_differ": "widely spread trials",
    "drift": "drifting times",
    "no_turn": "beside another user's process",
    "unlike_blocks": "steps that differ",
    "warmup_capped": "warm-up cut short",
    "incomplete": "a later pass cut short",
}
"""The caveats that a sentence may have, in a few words."""

FLAGGED_SHARE = 0.25
"""Minimum share of an answer's cells with a flag for which the flag is a caveat of the answer. Otherwise an answer that
is based on many cells would have a caveat more often."""


def by_importance(caveats: Collection[str]) -> list[str]:
    """Each caveat once, in the order of CAVEATS."""
    return [caveat for caveat in CAVEATS if caveat in caveats]


BUSY = frozenset(DISTURBED) - {"throttled"}
"""Flags of cells that others disturbed."""


def compared_ratio(ratio: Interval) -> dict[str, Any]:
    """The fields of a comparison on its ratio."""
    status = compared(ratio)
    return {"status": status, "detectable": detectable(ratio, status), **columns_of(ratio, "ratio{}")}


def detectable(ratio: Interval, status: str) -> float | None:
    """The largest difference, as a share, that an inconclusive comparison allows."""
    if status != INCONCLUSIVE or ratio.low is None or ratio.high is None:
        return None
    return max(ratio.high, 1 / ratio.low) - 1


def flags_of(cells: pd.DataFrame) -> list[str]:
    """`busy_machine` if others disturbed the cells, and the flags that at least FLAGGED_SHARE of them have."""
    flags_of_cells = list(cells["flag_names"])
    counts = Counter(flag for flags in flags_of_cells for flag in flags)
    busy = ["busy_machine"] if _is_busy(cells) else []
    return busy + sorted(flag for flag, count in counts.items() if count / len(flags_of_cells) >= FLAGGED_SHARE)


def _is_busy(cells: pd.DataFrame) -> bool:
    """Whether others disturbed most of the cells of a device of a machine."""
    cells_of, busy_of = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for machine, device, flags in zip(cells["machine"], cells["device"], cells["flag_names"], strict=True):
        cells_of[machine, device] += 1
        busy_of[machine, device] += not BUSY.isdisjoint(flags)
    return any(busy_of[side] > 0.5 * count for side, count in cells_of.items())


def basis(trials: int, cells: pd.DataFrame) -> dict[str, Any]:
    """The smallest number of trials of an answer, and its caveats: a single trial, and the flags of its cells."""
    return {"trials": trials, "caveats": [*(["one_trial"] if trials == 1 else []), *flags_of(cells)]}

"""Tables of the checks: two ways to the same number, and what a trial costs beside its measuring."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from crossover.statistics.summary import paired_ratio
from crossover.tables.frames import CELL_AXES

MEASURING = ("warmup_s", "timed_s", "memory_pass_s")
"""Columns of the seconds that a trial exists for."""


def pair_table(samples: pd.DataFrame, by: Sequence[str], first: str, second: str, tolerance: float) -> pd.DataFrame:
    """One row a group of `by`: medians of both columns in seconds, their ratio with its 95 % interval, a verdict.

    `agree` means that the interval holds 1 and lies within +-`tolerance`.
    """
    rows = []
    for key, group in samples.groupby(list(by), sort=False):
        found = paired_ratio(group[second].tolist(), group[first].tolist())
        low, high = (found.low or found.ratio), (found.high or found.ratio)
        rows.append(
            dict(zip(by, key, strict=True))
            | {"pairs": len(group), first: group[first].median(), second: group[second].median()}
            | {"ratio": found.ratio, "low": low, "high": high}
            | {"agree": low <= 1 <= high and 1 - tolerance <= low and high <= 1 + tolerance}
        )
    return pd.DataFrame(rows)


def trial_costs(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row a trial: seconds from its start to the next one's, and what of them was not measuring.

    Only trials that the same host measured one right after the other say anything: a trial of status `ok` whose
    successor starts at most a minute later. Snakemake's own share is part of the cost.
    """
    ordered = measurements.assign(start=pd.to_datetime(measurements["started_at"])).sort_values("start")
    following = ordered["start"].shift(-1) - ordered["start"]
    ordered["from_start_to_start_s"] = following.dt.total_seconds()
    ordered["measuring_s"] = ordered[list(MEASURING)].sum(axis=1)
    ordered["cost_s"] = ordered["from_start_to_start_s"] - ordered["measuring_s"]
    whole = (ordered["status"] == "ok") & (ordered["cost_s"] < 60)
    columns = [*CELL_AXES, "trial", "isolation", "from_start_to_start_s", "measuring_s", "cost_s"]
    return ordered.loc[whole, columns].reset_index(drop=True)

"""Trials alone and beside others on a machine's other GPUs: what a pair of them says, and the table over pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from crossover.checks.checks import pair_table
from crossover.errors import UserError

TOLERANCE = 0.04
ALL = "all"
"""Stands for a cell in the row over all pairs."""


@dataclass(frozen=True)
class Timed:
    """A trial's row, and the seconds from the start of its command to its end."""

    row: Mapping[str, Any]
    seconds: float


def turned(gpus: Sequence[str], pair: int) -> list[str]:
    """The same GPUs, another one first for each pair, until all were."""
    first = pair % len(gpus)
    return [*gpus[first:], *gpus[:first]]


def pair_of(alone: Timed, at_once: Sequence[Timed]) -> dict[str, Any]:
    """The step times in seconds on the GPU that measured alone, and the seconds of a trial, alone and among others.

    Raises UserError where further trials were at work, or one of these was not beside the others.
    """
    gpu = alone.row["device_uuid"]
    beside = [timed.row for timed in at_once if timed.row["device_uuid"] == gpu]
    counts = [int(alone.row["leased_beside"]), *(int(row["leased_beside"]) for row in beside)]
    if counts != [0, len(at_once) - 1]:
        raise UserError(
            f"{gpu}: {' and '.join(map(str, counts))} other GPUs were leased during a trial alone and one beside "
            f"{len(at_once) - 1}: other trials are at work on this machine; run the check again when they are done, it "
            "keeps the pairs before"
        )
    return {
        "cell": f"{alone.row['workload']} {alone.row['size']}",
        "gpu": gpu,
        "alone_s": alone.row["step_time_s"],
        "beside_s": beside[0]["step_time_s"],
        "trial_alone_s": alone.seconds,
        "trial_beside_s": sum(timed.seconds for timed in at_once) / len(at_once),
    }


def beside_table(samples: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and one over all: the ratio of step times beside/alone, its spread over pairs, and the throughput.

    `throughput_ratio` is the number of trials that end in a second with all GPUs at work, over that with one; what
    Snakemake adds is not in it.
    """
    every = pd.concat([samples, samples.assign(cell=ALL)])
    table = pair_table(every, ["cell"], "alone_s", "beside_s", TOLERANCE)
    table["within"] = (table["low"] <= 1) & (table["high"] >= 1)
    own = every.assign(single=every["beside_s"] / every["alone_s"]).groupby("cell", sort=False)
    for name, share in {"smallest": 0, "lower_quartile": 0.25, "upper_quartile": 0.75, "largest": 1}.items():
        table[name] = own["single"].quantile(share).to_numpy()
    means = own[["trial_alone_s", "trial_beside_s", "gpus"]].mean()
    table["trials_per_s_alone"] = (1 / means["trial_alone_s"]).to_numpy()
    table["trials_per_s_beside"] = (means["gpus"] / means["trial_beside_s"]).to_numpy()
    table["throughput_ratio"] = table["trials_per_s_beside"] / table["trials_per_s_alone"]
    return table

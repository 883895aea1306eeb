"""Simulate rankings of machines whose true times are known, for the share of runs that state a false one.

    python tests/validation rankings --simulations=500

Three hosts have a CPU and a GPU each. Either all were measured, as in merged runs, or two are references.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from simulation import simulate_cases, simulation_options

from crossover.compare.cells import CostMeans, means_of, summarise
from crossover.compare.intervals import Floats
from crossover.config.words import HERE, is_cpu
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import write_csv
from crossover.tables.registry import CELL_AXES
from crossover.topics.ranking.table import Side, Standing, machines_of, standings_along
from crossover.topics.references.table import EAGER_SPREAD

MERGED, REFERENCES = "merged runs", "references"
EQUAL, HOSTS, APART, CROSSING = "equal", "hosts differ", "1.1x apart", "crossing"
"""All sides take the same time, also on all hosts; all but for the host; the next side takes 1.1 times as long; or CPUs
and GPUs cross, too. Hosts differ by EAGER_SPREAD, except for EQUAL, a fast host being fast on both devices."""
STEP = math.log(1.1)
SIDES: list[Side] = [(machine, device) for machine in (HERE, "a", "b") for device in ("cpu", "cuda")]
SIZES: Floats = 8.0 * 3.0 ** np.arange(6)
SPREAD = (0.05, 0.15)
"""Range of a side's standard deviation of ln(time) between trials."""
STUDY = "disc_depth"
PLAIN = {
    **dict.fromkeys(CELL_AXES, ""),
    **{"study": STUDY, "protocol": "resident", "precision": "fp32", "execution": "eager", "status": "ok"},
}


@dataclass(frozen=True)
class RankingCase:
    machines: str
    truth: str
    trials: int


CASES = [
    RankingCase(machines, truth, trials)
    for machines in (MERGED, REFERENCES)
    for truth in (EQUAL, HOSTS, APART, CROSSING)
    for trials in (1, 3, 8)
]


def ranking_rows(case: RankingCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row: the shares of runs that rank any side, call one the fastest, do so falsely, or state anything false.

    A reference stands for other hosts of its kind, so the truth about it is another host's time.
    """
    draw = np.random.default_rng([seed, *(ord(letter) for letter in str(case))])
    own = np.array([_curves(case.truth, draw) for _ in range(simulations)])
    measured, true = own + _hosts(case, simulations, draw), own + _hosts(case, simulations, draw)
    is_here = np.array([machine == HERE or case.machines == MERGED for machine, _ in SIDES])
    true[:, is_here] = measured[:, is_here]
    table = machines_of(*_cells(measured, is_here, case.trials, draw), {STUDY: "size"}, {STUDY: None})
    lines = {number: standings_along(line, "size") for number, line in table.groupby("batch_size")}
    found = [_judged(lines.get(number + 1, []), times) for number, times in enumerate(true)]
    return pd.DataFrame([asdict(case) | pd.DataFrame(found).mean().to_dict()])


def _curves(truth: str, draw: np.random.Generator) -> Floats:
    """ln(time) on hosts that do not differ, of shape (sides, sizes)."""
    order = draw.permutation(len(SIDES))[:, None] * STEP * (truth in (APART, CROSSING))
    if truth != CROSSING:
        return np.repeat(order, len(SIZES), axis=1)
    slopes = np.array([0.7 if is_cpu(device) else 0.1 for _, device in SIDES])
    curves: Floats = order + slopes[:, None] * np.log(SIZES / SIZES[len(SIZES) // 2])
    return curves


def _hosts(case: RankingCase, simulations: int, draw: np.random.Generator) -> Floats:
    """ln(time) of each side's host relative to others of its kind, of shape (simulations, sides, 1)."""
    of_hosts = draw.normal(0, EAGER_SPREAD / math.sqrt(2) * (case.truth != EQUAL), (simulations, len(SIDES) // 2))
    deviations: Floats = np.repeat(of_hosts, 2, axis=1)[:, :, None]
    return deviations


def _cells(
    logs: Floats, is_here: Any, trials: int, draw: np.random.Generator
) -> tuple[pd.DataFrame, dict[tuple[Any, ...], CostMeans]]:
    """Cells of all simulated runs, of which each has another batch size, and their means."""
    spreads = np.exp(draw.uniform(*np.log(SPREAD), logs.shape[:2]))[:, :, None, None]
    seconds = np.exp(logs[..., None] + spreads * draw.normal(size=(*logs.shape, trials)))
    number, side, size, trial = np.indices(seconds.shape).reshape(4, -1)
    machines, devices = (np.array(names)[side] for names in zip(*SIDES, strict=True))
    values = {"machine": machines, "device": devices, "size": SIZES[size].astype(int), "trial": trial + 1}
    rows = pd.DataFrame(PLAIN | values | {"batch_size": number + 1, "step_time_s": seconds.ravel()})
    rows = rows.reindex(columns=list(COLUMNS)).astype(object)
    rows = rows.where(rows.notna(), None)
    rows["flag_names"] = [[]] * len(rows)
    parts = [summarise(rows[is_here[side]]), summarise(rows[~is_here[side]], origin="reference")]
    return pd.concat([part for part in parts if len(part)], ignore_index=True), means_of(rows)


def _judged(standings: list[Standing], true: Floats) -> dict[str, bool]:
    """`true` is ln(time), of shape (sides, sizes)."""
    false = [_is_false(standing, true) for standing in standings]
    firsts = [standing.is_first for standing in standings]
    false_firsts = [is_first and is_false for is_first, is_false in zip(firsts, false, strict=True)]
    return {"ranks": bool(standings), "fastest": any(firsts), "false_fastest": any(false_firsts), "false": any(false)}


def _is_false(standing: Standing, true: Floats) -> bool:
    """Whether a side is ahead of one that is as fast or faster at a size."""
    within = (standing.low <= SIZES) & (standing.high >= SIZES)
    ahead, behind = (
        true[[SIDES.index(side) for side in sides]][:, within] for sides in (standing.ahead, standing.behind)
    )
    return bool((ahead.max(axis=0) >= behind.min(axis=0)).any())


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=500, output="results/checks/rankings.csv")
    rows = simulate_cases(ranking_rows, CASES, options)
    write_csv(rows, options.output)
    print(rows.round(3).to_string(index=False))

"""What refinement saves against grids that are as dense everywhere, told by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from crossover.checks.coverage import Case, advantage_of, grid, judged, refine
from crossover.checks.simulation import NOISES, Machine
from crossover.config.studies import Effort, Refinement

DENSITIES = (1, 2, 4)
"""Gaps of a dense grid in one of the first grid; refinement ends with the last, in one gap."""
TRIALS = (3, 4, 5, 6, 7, 8, 10, 12)
"""Of every cell of a dense grid."""


@dataclass(frozen=True)
class Cost:
    """What a way to measure costs, and what it leads to."""

    half_width: float
    """Of the interval, as a share of the crossover; median."""
    timed_s: float
    """Seconds that are timed; mean."""


def cost_of(case: Case, sizes: Sequence[int], refinement: Refinement, simulations: int, seed: int) -> Cost:
    """Simulate a way to measure; each trial times as long as the effort asks for at least."""
    widths, trials = [], []
    for number in range(simulations):
        generator = np.random.default_rng([seed, number])
        advantage, true = advantage_of(case, generator)
        machine = Machine(advantage, NOISES[number % len(NOISES)], generator)
        widths.append(judged(refine(machine, sizes, case.trials, refinement)[-1], true)["half_width"])
        trials.append(machine.trials())
    return Cost(float(pd.Series(widths, dtype=float).median()), float(np.mean(trials)) * Effort().timed_min_s)


def savings(case: Case, simulations: int, seed: int) -> pd.DataFrame:
    """Timed seconds with refinement beside those of the cheapest dense grid whose interval is as narrow.

    One row for grids as dense as refinement ends, one for grids of any density; empty seconds where none is as narrow.
    """
    refined = cost_of(case, grid(case.factor), Refinement(), simulations, seed)
    rows = []
    for name, densities in (("as_dense", DENSITIES[-1:]), ("any_density", DENSITIES)):
        row = {**asdict(case), "grid": name, "half_width": refined.half_width, "timed_s": refined.timed_s}
        rows.append(row | _cheapest(case, densities, refined, simulations, seed))
    return pd.DataFrame(rows)


def _cheapest(
    case: Case, densities: Sequence[int], refined: Cost, simulations: int, seed: int
) -> dict[str, float | int | None]:
    grids = {density: grid(case.factor ** (1 / density)) for density in densities}
    ways = [(len(sizes) * trials, density, trials) for density, sizes in grids.items() for trials in TRIALS]
    bare = Refinement(bisections=0, extra_trials=0)
    for _, density, trials in sorted(ways):
        dense = cost_of(replace(case, trials=trials), grids[density], bare, simulations, seed)
        if dense.half_width <= refined.half_width:
            return {
                "dense_sizes": len(grids[density]),
                "dense_trials": trials,
                "dense_timed_s": dense.timed_s,
                "share": refined.timed_s / dense.timed_s,
            }
    return dict.fromkeys(("dense_sizes", "dense_trials", "dense_timed_s", "share"))

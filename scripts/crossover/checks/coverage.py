"""How often the interval of a crossover holds the true one, told by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from crossover.checks.simulation import KINKS, NOISES, SHAPES, Machine, crossing_at, true_crossings
from crossover.checks.simulation_methods import Estimate, medians, others
from crossover.config.studies import Refinement
from crossover.statistics.crossover import crossover_of
from crossover.statistics.crossover_cells import Floats, advantages_of_cells
from crossover.statistics.refinement import plan_refinement

SMALLEST = 8
SPAN = 260
"""Largest size of a first grid over its smallest, at most."""
OTHERS_EVERY = 5
"""One simulation in so many tries the other methods too, which take longer."""
INSIDE, NEVER, TIE, PLATEAU = "inside", "never", "tie", "plateau"
OUTSIDE = ("below 3", "below 1.5", "below 1.1", "above 1.1", "above 1.5", "above 3")
"""Crossings beyond an end of the range, by a factor."""

CURVED = ("launch_floor", "cache_knee")
STEEP_AND_SHALLOW = ("launch_floor", "shallow")
NONE: Floats = np.empty(0)


@dataclass(frozen=True)
class Case:
    """One setting to simulate."""

    crossing: str
    """Where the true one lies; `never`: ahead by 10 % everywhere, `plateau`: behind at first, then equal."""
    shape: str
    trials: int
    factor: float
    """Between neighbouring sizes of the first grid."""


def cases() -> list[Case]:
    """All settings, those with a crossing inside the range first."""
    plain = [Case(INSIDE, shape, trials, 3) for shape in (*SHAPES, *KINKS) for trials in (3, 5)]
    grids = [Case(INSIDE, shape, trials, factor) for shape in CURVED for trials in (3, 5) for factor in (2, 3.5)]
    outside = [Case(where, shape, trials, 3) for where in OUTSIDE for shape in STEEP_AND_SHALLOW for trials in (3, 5)]
    none = [Case(where, "", trials, 3) for where in (NEVER, TIE, PLATEAU) for trials in (3, 5)]
    return plain + grids + outside + none


def grid(factor: float) -> list[int]:
    """Sizes with a constant factor between them, over the range of every simulation."""
    return [round(SMALLEST * factor**power) for power in range(int(math.log(SPAN) / math.log(factor)) + 1)]


def advantage_of(case: Case, generator: np.random.Generator) -> tuple[Callable[[Floats], Floats], Floats]:
    """The true curve of one simulation, and where it crosses within the range."""
    sizes = grid(case.factor)
    if case.crossing == INSIDE:
        near = float(np.exp(generator.uniform(math.log(sizes[0] * 1.5), math.log(sizes[-1] / 1.5))))
        curve = crossing_at(case.shape, near)
        return curve, true_crossings(curve, near)
    if case.crossing in OUTSIDE:
        side, factor = case.crossing.split()
        return crossing_at(case.shape, sizes[-1] * float(factor) if side == "above" else sizes[0] / float(factor)), NONE
    level = 0.1 if case.crossing == NEVER else 0.0
    if case.crossing == PLATEAU:
        return lambda n: np.minimum(np.log(n / 100), 0), NONE
    return lambda n: np.full(len(n), level), NONE


def refine(machine: Machine, sizes: Sequence[int], trials: int, refinement: Refinement) -> list[Estimate]:
    """Measure the sizes, then stage by stage what the refinement plans; our estimate after each stage."""
    machine.measure(sizes, trials)
    found = crossover_of(advantages_of_cells(medians(machine.samples)))
    history = [found]
    for stage in range(1, refinement.bisections + 2):
        plan = plan_refinement(found, {round(size) for size in machine.samples}, stage, trials, refinement)
        machine.measure(plan.sizes, trials)
        for size, wanted in plan.trials.items():
            machine.measure([size], wanted)
        if plan.sizes or plan.trials:
            found = crossover_of(advantages_of_cells(medians(machine.samples)))
        history.append(found)
    return [Estimate(own.status, own.size, own.low, own.high) for own in history]


def simulate(case: Case, simulations: int, seed: int) -> pd.DataFrame:
    """One row a simulation and method: status, error and half width as shares of the crossover, whether it is held."""
    rows = []
    for number in range(simulations):
        generator = np.random.default_rng([seed, number, *(ord(letter) for letter in str(case))])
        advantage, true = advantage_of(case, generator)
        machine = Machine(advantage, NOISES[number % len(NOISES)], generator)
        history = refine(machine, grid(case.factor), case.trials, Refinement())
        found = {"ours": history[-1], "ours_without_extra_trials": history[-2], "ours_first_grid": history[0]}
        if number % OTHERS_EVERY == 0 and case.crossing == INSIDE:
            found |= {name: method(machine.samples) for name, method in others(generator).items()}
        rows += [{"method": name, "noise": machine.noise, **judged(estimate, true)} for name, estimate in found.items()]
    return pd.DataFrame(rows)


def judged(found: Estimate, true: Floats) -> dict[str, object]:
    """How far off an estimate is. Of several true crossings close together, one has to be held."""
    answer: dict[str, object] = {"status": found.status, "held": np.nan, "half_width": np.nan, "error": np.nan}
    if found.status == "bracketed" and found.size is not None and len(true):
        answer["error"] = found.size / float(np.median(true)) - 1
        if found.low is not None and found.high is not None:
            answer["held"] = float(((found.low <= true * 1.001) & (true <= found.high)).any())
            answer["half_width"] = (found.high - found.low) / 2 / found.size
    return answer


def coverage_rows(case: Case, simulations: int, seed: int) -> pd.DataFrame:
    """One row a method and status of a case."""
    found = simulate(case, simulations, seed)
    tried = found["method"].value_counts().to_dict()
    rows = []
    for key, own in found.groupby(["method", "status"]):
        method, status = map(str, key)
        counts = {"simulations": tried[method], "share": len(own) / tried[method]}
        medians_of = {name: own[name].median() for name in ("half_width", "error")}
        rows.append(
            {**asdict(case), "method": method, "status": status, **counts, "coverage": own["held"].mean(), **medians_of}
        )
    return pd.DataFrame(rows)

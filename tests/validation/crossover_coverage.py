"""Simulate crossovers, for the coverage of their interval by our method and by two common ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from simulation import KINKS, NOISES, SHAPES, SPREADS, STAIRS, STEPS, Machine, crossing_at, true_crossings

from crossover.compare.budget import fit_stage
from crossover.compare.crossover import Crossover, crossover_of
from crossover.compare.crossover_curve import advantages_of_cells
from crossover.compare.intervals import Floats
from crossover.compare.refinement import Request, half_width, plan_refinement
from crossover.config.configuration import DOUBLINGS, WIDTH_IN_TIME
from crossover.config.studies import PRESETS, Cell, Refinement
from crossover.tables.trial_times import KEPT_S

SMALLEST = 8
SPAN = 260
"""Maximum ratio of the largest to the smallest size of a first grid."""
OTHERS_EVERY = 5
"""The common methods are slower, so only one of this many simulations uses them."""
INSIDE, AT_SIZE, NEVER, TIE, PLATEAU = "inside", "at a size", "never", "tie", "plateau"
JUDGED = ("covered", "printed", "half_width", "error")
OUTSIDE = ("below 3", "below 1.5", "below 1.1", "above 1.1", "above 1.5", "above 3")
"""Crossings outside the range, by a factor beyond its lower or upper end."""

CURVED = ("launch_floor", "cache_knee")
STEEP_AND_SHALLOW = ("launch_floor", "shallow")
NONE: Floats = np.empty(0)

RESAMPLES = 200

EFFORTS = ("quick", "default")

MINUTES = (3.0, 5.0, 15.0)
TRIAL_S = 2.7
"""Time of a trial, with the gap before it, as in a default run on an H100 host."""

Samples = Mapping[float, tuple[Floats, Floats]]
"""ln(seconds) by size in ascending order, of shape (trials, samples): the baseline's, the contender's."""


@dataclass(frozen=True)
class Case:
    crossing: str
    """Location of the true crossover; `at a size` of the first grid is the worst for a stair.

    With `never` the contender leads by 10 % at all sizes; with `plateau` it is slower at small sizes and equal at
    larger ones.
    """
    shape: str
    effort: str
    """One of EFFORTS."""
    factor: float = 3
    """Factor between neighbouring sizes of the first grid."""
    spread: str = "2 to 10 %"
    """One of SPREADS."""
    minutes: float | None = field(default=None, repr=False)
    """The run's `minutes`. All have the same curves and noise, since `repr` seeds them."""


def cases() -> list[Case]:
    """All settings, beginning with crossings within the range."""
    plain = [Case(INSIDE, shape, effort) for shape in (*SHAPES, *KINKS) for effort in EFFORTS]
    grids = [Case(INSIDE, shape, effort, factor) for shape in CURVED for effort in EFFORTS for factor in (2, 3.5)]
    outside = [Case(where, shape, effort) for where in OUTSIDE for shape in STEEP_AND_SHALLOW for effort in EFFORTS]
    none = [Case(where, "", effort) for where in (NEVER, TIE, PLATEAU) for effort in EFFORTS]
    return plain + grids + outside + none


def spread_cases() -> list[Case]:
    settings = [(INSIDE, shape) for shape in STEEP_AND_SHALLOW] + [(TIE, ""), (PLATEAU, "")]
    return [
        Case(crossing, shape, effort, spread=spread)
        for spread in SPREADS
        for effort in EFFORTS
        for crossing, shape in settings
    ]


def stair_cases() -> list[Case]:
    return [
        Case(crossing, shape, effort, spread="5 to 15 %")
        for shape in (*STEPS, *STAIRS)
        for effort in EFFORTS
        for crossing in (INSIDE, AT_SIZE)
    ]


def timed_cases() -> list[Case]:
    """Runs with `minutes`, from those that leave little for refinement to those that measure all that is asked."""
    smooth = [Case(INSIDE, shape, effort, minutes=m) for shape in SHAPES for effort in EFFORTS for m in MINUTES]
    drifting = [
        Case(INSIDE, shape, effort, spread=spread, minutes=m)
        for shape in STEEP_AND_SHALLOW
        for spread in ("25 %", "drift of each side")
        for effort in EFFORTS
        for m in MINUTES
    ]
    return smooth + drifting + [Case(TIE, "", effort, minutes=m) for effort in EFFORTS for m in MINUTES]


def first_grid(factor: float) -> list[int]:
    """Logarithmically spaced sizes over the range of the simulations."""
    return [round(SMALLEST * factor**power) for power in range(int(math.log(SPAN) / math.log(factor)) + 1)]


def advantage_of(case: Case, generator: np.random.Generator) -> tuple[Callable[[Floats], Floats], Floats]:
    """The true curve of one simulation, and its crossings within the range."""
    sizes = first_grid(case.factor)
    if case.crossing in (INSIDE, AT_SIZE):
        ends = math.log(sizes[0] * 1.5), math.log(sizes[-1] / 1.5)
        at_size = case.crossing == AT_SIZE
        near = float(generator.choice(sizes[1:-1]) if at_size else np.exp(generator.uniform(*ends)))
        curve = crossing_at(case.shape, near)
        return curve, true_crossings(curve, near)
    if case.crossing in OUTSIDE:
        side, factor = case.crossing.split()
        return crossing_at(case.shape, sizes[-1] * float(factor) if side == "above" else sizes[0] / float(factor)), NONE
    if case.crossing == PLATEAU:
        return lambda n: np.minimum(np.log(n / 100), 0), NONE
    level = 0.1 if case.crossing == NEVER else 0.0
    return lambda n: np.full(len(n), level), NONE


def refine(machine: Machine, sizes: Sequence[int], trials: int, refinement: Refinement) -> list[Crossover]:
    """Measure the sizes, then what refinement plans, stage by stage; returns the crossover after each stage."""
    machine.measure(sizes, refinement.first(trials))
    crossover = crossover_of(advantages_of_cells(medians(machine.samples)))
    history = [crossover]
    for stage in range(1, refinement.bisections + len(refinement.trials_of_stages(trials)) + 1):
        plan = plan_refinement(crossover, {round(size) for size in machine.samples}, stage, trials, refinement)
        machine.measure(plan.sizes, refinement.first(trials))
        for wanted in {*plan.trials.values()}:
            machine.measure([*plan.trials], wanted)
        if plan.sizes or plan.trials:
            crossover = crossover_of(advantages_of_cells(medians(machine.samples)))
        history.append(crossover)
    return history


def refine_in_time(
    machine: Machine, sizes: Sequence[int], trials: int, refinement: Refinement, minutes: float
) -> list[Crossover]:
    """Like `refine`, with what fits into the time if each trial takes `TRIAL_S`."""
    first = refinement.first(trials)
    machine.measure(sizes, first)
    crossover = crossover_of(advantages_of_cells(medians(machine.samples)))
    history = [crossover]
    for stage in range(1, refinement.bisections + len(refinement.trials_at_crossover(trials)) + 1):
        plan = plan_refinement(crossover, {round(size) for size in machine.samples}, stage, trials, refinement)
        measured = {
            Cell("", "", "", 1, "fp32", "eager", round(size), side): range(1, len(samples) + 1)
            for size, sides in machine.samples.items()
            for side, samples in zip(("cpu", "cuda"), sides, strict=True)
        }
        wanted = {
            Cell("", "", "", 1, "fp32", "eager", size, side): {*numbers}
            for size, numbers in plan.numbers(first).items()
            for side in ("cpu", "cuda")
        }
        request = Request(wanted, {"study": "", "half_width": half_width(crossover, float)}, refinement.target_width)
        left_s = 60 * minutes - KEPT_S - TRIAL_S * sum(map(len, measured.values()))
        fitted = fit_stage([request], measured, lambda _: TRIAL_S, left_s)
        totals = {cell.size: max(numbers) for cell, numbers in fitted.trials.items()}
        for total in sorted({*totals.values()}):
            machine.measure([size for size in totals if totals[size] == total], total)
        if fitted.trials:
            crossover = crossover_of(advantages_of_cells(medians(machine.samples)))
        history.append(crossover)
    return history


def medians(samples: Samples) -> dict[float, tuple[Floats, Floats]]:
    """The medians of the trials, in ln(seconds), from which the crossover is estimated."""
    return {size: (np.median(base, 1), np.median(contender, 1)) for size, (base, contender) in samples.items()}


def steps_bootstrap(samples: Samples, generator: np.random.Generator) -> Crossover:
    """Log-log interpolation with a percentile interval that treats all samples of a cell as independent."""
    advantage = np.zeros((len(samples), RESAMPLES))
    for row, sides in zip(advantage, samples.values(), strict=True):
        for sign, side in zip((1, -1), sides, strict=True):
            drawn = generator.integers(side.size, size=(RESAMPLES, side.size))
            row += sign * side.ravel()[drawn].mean(axis=1)
    roots = [_first_root(np.array([*samples]), column) for column in advantage.T]
    crossed = [root for root in roots if root is not None]
    if len(crossed) < RESAMPLES / 2:
        return Crossover("undecided")
    return Crossover("bracketed", *np.quantile(crossed, [0.5, 0.025, 0.975]).tolist())


def _first_root(sizes: Floats, advantage: Floats) -> float | None:
    changes = np.flatnonzero((advantage[:-1] <= 0) & (advantage[1:] > 0))
    if not len(changes):
        return None
    at = int(changes[0])
    share = advantage[at] / (advantage[at] - advantage[at + 1])
    return math.exp(float(np.log(sizes[at]) + share * np.log(sizes[at + 1] / sizes[at])))


def first_win(samples: Samples) -> Crossover:
    """The first measured size at which the contender is ahead; its interval is the gap before it."""
    sizes = [*samples]
    ahead = [bool(base.mean() > contender.mean()) for base, contender in medians(samples).values()]
    if True not in ahead or ahead[0]:
        return Crossover("undecided")
    first = ahead.index(True)
    return Crossover("bracketed", sizes[first], sizes[first - 1], sizes[first])


def simulate(case: Case, simulations: int, seed: int) -> pd.DataFrame:
    """One row per simulation and method, with the columns of `judged`."""
    rows = []
    for number in range(simulations):
        generator = np.random.default_rng([seed, number, *(ord(letter) for letter in str(case))])
        advantage, true = advantage_of(case, generator)
        machine = Machine(advantage, NOISES[number % len(NOISES)], generator, spread=SPREADS[case.spread])
        preset = PRESETS[case.effort]
        grid = first_grid(case.factor)
        if case.minutes is None:
            history = refine(machine, grid, preset.trials, preset.refinement)
        else:
            further = replace(preset.refinement, doublings=DOUBLINGS, target_width=WIDTH_IN_TIME)
            history = refine_in_time(machine, grid, preset.trials, further, case.minutes)
        if len(true) and (drift := machine.mean_drift):
            true = true_crossings(lambda n, add=drift, of=advantage: of(n) + add, float(np.median(true)))
        grown = history[preset.refinement.bisections]
        estimates = {"ours": history[-1], "ours_without_further_trials": grown, "ours_first_grid": history[0]}
        if number % OTHERS_EVERY == 0 and case.crossing == INSIDE:
            estimates["steps_bootstrap"] = steps_bootstrap(machine.samples, generator)
            estimates["first_win"] = first_win(machine.samples)
        rows += [{"method": name, **judged(estimate, true)} for name, estimate in estimates.items()]
    return pd.DataFrame(rows)


def judged(estimate: Crossover, true: Floats) -> dict[str, object]:
    """An estimate's status, whether its interval contains a true crossing (`covered`), relative half width and error.

    `printed` says whether a true crossing lies in the interval or between the significant sizes printed beside it.
    For a tie at one end of the range, `covered` says whether a true crossing lies beyond the bound.
    """
    judgement: dict[str, object] = {"status": estimate.status} | dict.fromkeys(JUDGED, np.nan)
    if estimate.status == "bracketed" and estimate.size is not None and len(true):
        judgement["error"] = estimate.size / float(np.median(true)) - 1
        if estimate.low is not None and estimate.high is not None:
            sure = estimate.sure or (estimate.low, estimate.high)
            inside = (estimate.low <= true * 1.001) & (true <= estimate.high)
            between = (sure[0] <= true * 1.001) & (true <= sure[1])
            judgement |= {"covered": float(inside.any()), "printed": float((inside | between).any())}
            judgement["half_width"] = (estimate.high - estimate.low) / 2 / estimate.size
    if estimate.status == "edge_tie" and len(true) and (estimate.low or estimate.high):
        judgement["covered"] = float((((estimate.low or 0) <= true) & (true <= (estimate.high or math.inf))).any())
    return judgement


def coverage_rows(case: Case, simulations: int, seed: int) -> pd.DataFrame:
    return coverage_table(asdict(case), simulate(case, simulations, seed))


def coverage_table(case: dict[str, Any], outcomes: pd.DataFrame, **more: Any) -> pd.DataFrame:
    """One row per method and status: the case, the share of simulations, and the coverage of the interval."""
    tried = outcomes.groupby("method").size()
    groups = outcomes.groupby(["method", "status"])
    medians = {name: (name, "median") for name in ("half_width", "error")}
    table = groups.agg(coverage=("covered", "mean"), printed=("printed", "mean"), **medians, **more)
    table.insert(0, "share", groups.size() / tried.reindex(table.index.get_level_values("method")).to_numpy())
    return pd.DataFrame([case]).merge(table.reset_index(), how="cross")

"""Simulate studies over sizes and batch sizes whose true times are known, refined as in a run.

    python tests/validation planes --simulations=200

For each case: the share of runs that certify a side falsely anywhere, the share of the certified area that is wrong,
the certified share of the plane, and the points and trials that it took; then the share of runs with a rule, on how
much of the plane rules err as a multiple of the better single side, and the share of rules no better than that side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from simulation import simulate_cases, simulation_options

from crossover.compare.intervals import Floats
from crossover.compare.plane import Ints, Plane, plan_planes, planes_of
from crossover.compare.rules import simplest_rule
from crossover.config.studies import Cell, Refinement
from crossover.tables.frames import write_csv

EQUAL, LINEAR, CACHE, WAVES, STAIRS = "equal", "linear", "cache", "waves", "stairs"
"""Both sides take the same time; each takes an overhead and a time in proportion to the work; the CPU also slows down
beyond its cache; the GPU's rate also rises and falls; or the GPU works on blocks of 32 rows."""
ALIGNED, BAND = "aligned", "band"
"""The GPU is faster only at multiples of 8, as the sizes of the first grid are; or it is slower only between these."""
BOTH, EITHER, BELOW = "both", "either", "below"
"""The GPU is faster where the size and the batch size, or one of these, exceed limits: the boundary has a corner. Or it
is faster below a size only, for which there is no kind of rule."""
SIZES, BATCH_SIZES = (16, 64, 256, 1024, 4096), (1, 5, 23, 108, 512)
REFINEMENT = Refinement(pairs=("plane",), extra_trials=8)
PLACES = 40
"""Random places in each certified triangle, and along each axis of the plane, at which the truth is looked up."""

Truth = Callable[[Floats, Floats], Floats]
"""ln(CPU's time / GPU's time) at sizes and batch sizes."""


@dataclass(frozen=True)
class PlaneCase:
    truth: str
    trials: int
    spread: float
    """Standard deviation of ln(time) between trials."""


CASES = [
    PlaneCase(truth, trials, spread)
    for truth in (EQUAL, LINEAR, CACHE, WAVES, STAIRS, ALIGNED, BAND, BOTH, EITHER, BELOW)
    for trials, spread in ((3, 0.1), (8, 0.05), (8, 0.15))
]


def plane_rows(case: PlaneCase, simulations: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng([seed, *(ord(letter) for letter in str(case))])
    runs = pd.DataFrame([_simulated(case, draw) for _ in range(simulations)])
    return pd.DataFrame([asdict(case) | runs.mean().to_dict()])


def _simulated(case: PlaneCase, draw: np.random.Generator) -> dict[str, Any]:
    truth = truth_of(case.truth, draw)
    refinement = replace(REFINEMENT, first_trials=min(3, case.trials))
    first = refinement.first(case.trials)
    cells = [
        Cell("plane", "model", "resident", batch_size, "fp32", "eager", size, device)
        for size in SIZES
        for batch_size in BATCH_SIZES
        for device in ("cpu", "cuda")
    ]
    wanted = {cell: {*range(1, first + 1)} for cell in cells}
    rows: dict[tuple[Cell, int], float] = {}
    stages = refinement.bisections + len(refinement.trials_at_crossover(case.trials))
    for stage in range(1, stages + 2):
        for cell, numbers in wanted.items():
            for number in numbers:
                if (cell, number) not in rows:
                    log_ratio = truth(np.array(cell.size), np.array(cell.batch_size)) if cell.device == "cpu" else 0.0
                    rows[cell, number] = float(np.exp(log_ratio + case.spread * draw.normal()))
        table = pd.DataFrame([{**cell.values, "trial": number, "time": time} for (cell, number), time in rows.items()])
        requests = plan_planes(table, stage, refinement, case.trials)
        wanted = {cell: numbers for request in requests for cell, numbers in request.trials.items()}
    (plane,) = planes_of(table)
    wrong = wrong_share(plane, truth, draw)
    return {
        "false": wrong > 0,
        "wrong_share": wrong,
        "certified": plane.share(1) + plane.share(-1),
        "points": len(plane.points),
        "trials_measured": len(table),
        **_of_rule(plane, truth),
    }


def _of_rule(plane: Plane, truth: Truth) -> dict[str, float]:
    """Whether there is a rule, and on how much of the plane it errs, as a multiple of the better single side."""
    timed = plane.timed
    is_certified = bool(plane.share(1) or plane.share(-1))
    fit = simplest_rule(plane.points[timed], plane.mean[timed], plane.signs[timed]) if is_certified else None
    if fit is None:
        return {"rule": 0.0}
    ends = zip(plane.points.min(axis=0), plane.points.max(axis=0), strict=True)
    places = np.stack(np.meshgrid(*(np.geomspace(*both, PLACES) for both in ends)), axis=-1).reshape(-1, 2)
    wins = truth(*places.T) > 0
    errors = (fit.rule.chooses(places) != wins).mean() / min(wins.mean(), 1 - wins.mean())
    return {"rule": 1.0, "rule_errors": errors, "rule_worse": float(errors >= 1)}


def wrong_share(plane: Plane, truth: Truth, draw: np.random.Generator) -> float:
    """The share of the certified area, by random places in it, in which the other side is faster, or none is."""
    sides = plane.sides[plane.sides != 0]
    corners: Ints = plane.triangles[plane.sides != 0]
    weights = draw.dirichlet(np.ones(3), (len(corners), PLACES))
    places = np.exp(np.einsum("tpc,tcv->tpv", weights, np.log(plane.points[corners])))
    is_wrong = np.sign(truth(places[..., 0], places[..., 1])) != sides[:, None]
    return float(np.average(is_wrong.mean(axis=1), weights=plane.areas[plane.sides != 0])) if len(corners) else 0.0


def _limits(name: str, draw: np.random.Generator) -> Truth:
    least_size, least_batch_size = np.exp(draw.uniform(np.log((40, 3)), np.log((2000, 200))))
    advantage = draw.uniform(0.4, 1.2)
    is_faster = {BOTH: np.logical_and, EITHER: np.logical_or, BELOW: lambda is_large, _: np.logical_not(is_large)}[name]
    return lambda size, batch: np.where(is_faster(size > least_size, batch > least_batch_size), advantage, -advantage)


def truth_of(name: str, draw: np.random.Generator) -> Truth:
    if name in (BOTH, EITHER, BELOW):
        return _limits(name, draw)
    overhead_s, launch_s = draw.uniform(5e-6, 3e-5), draw.uniform(4e-5, 2e-4)
    cpu_rate, gpu_rate = 10 ** draw.uniform(10, 11), 10 ** draw.uniform(12, 13)
    power, batch_power = draw.uniform(1, 2), draw.uniform(0.7, 1)

    def log_ratio(size: Floats, batch_size: Floats) -> Floats:
        if name == EQUAL:
            return np.zeros(np.shape(size))
        if name in (ALIGNED, BAND):
            is_slow = np.round(size) % 8 > 0 if name == ALIGNED else np.abs(np.log2(size) % 2 - 1) < 0.3
            return np.broadcast_to(
                np.where(is_slow, -0.4, 0.4), np.broadcast_shapes(np.shape(size), np.shape(batch_size))
            )
        work = 20 * size**power * batch_size**batch_power
        slowdown = 1 + 1.5 / (1 + (5e5 / size**2) ** 2) if name == CACHE else 1.0
        rate = gpu_rate * np.exp(0.25 * np.sin(2 * np.log(size) + 1.3 * np.log(batch_size)) if name == WAVES else 0.0)
        done = 20 * size**power * (32 * np.ceil(batch_size / 32)) ** batch_power if name == STAIRS else work
        return np.asarray(np.log((overhead_s + slowdown * work / cpu_rate) / (launch_s + done / rate)))

    return log_ratio


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=200, output="results/checks/planes.csv")
    rows = simulate_cases(plane_rows, CASES, options)
    write_csv(rows, options.output)
    print(rows.round(3).to_string(index=False))

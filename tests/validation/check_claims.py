"""Simulate claims whose truth is known, for the rate of each verdict, above all of false ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from crossover_coverage import medians
from simulation import NOISES, Machine, crossing_at, simulate_cases, simulation_options

from crossover.compare.cells import summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.intervals import Floats
from crossover.compare.pairings import pairings
from crossover.config.words import BASELINE
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import write_csv
from crossover.tables.run_tables import run_tables
from crossover.topics.claims.findings import REASONS
from crossover.topics.claims.table import check_claims
from report_pages import study

SIZES = tuple(8 * 2**power for power in range(11))
RANGE = (float(SIZES[4]), float(SIZES[6]))
"""The claimed range of the crossover."""
RATIO_RANGE = (2.0, 2.5)
"""The claimed range of the speed-up at the largest size."""

EQUAL, INSIDE, AT_END, RATIO_INSIDE, RATIO_AT_END = (
    "no difference",
    "crossover inside",
    "crossover at an end",
    "ratio inside",
    "ratio at an end",
)
LIMIT = 1.0
BELOW: Mapping[str, float] = {"ratio below the limit": 0.8, "ratio at the limit": LIMIT, "ratio above the limit": 1.05}
"""True ratios of claims that a ratio is below LIMIT."""
SHAPES = ("launch_floor", "shallow")
CELL = {"study": "simulated", "workload": "", "variant": "", "protocol": "", "execution": "", "precision": "fp32"}


@dataclass(frozen=True)
class ClaimCase:
    truth: str
    shape: str
    """The shape of the curve, one of SHAPES; empty without a crossover."""
    trials: int


def claim_cases() -> list[ClaimCase]:
    crossovers = [(truth, shape) for truth in (INSIDE, AT_END) for shape in SHAPES]
    return [
        ClaimCase(truth, shape, trials)
        for truth, shape in [(EQUAL, ""), *crossovers, *((ratio, "") for ratio in (RATIO_INSIDE, RATIO_AT_END, *BELOW))]
        for trials in (2, 3, 5)
    ]


def simulate_verdicts(case: ClaimCase, simulations: int, seed: int) -> list[str]:
    """The verdict of each simulation, from the functions that a run uses."""
    verdicts = []
    tables = run_tables()
    for number in range(simulations):
        generator = np.random.default_rng([seed, number, *(ord(letter) for letter in str(case))])
        claim, sizes = _claim(case)
        machine = Machine(_advantage(case, generator), NOISES[number % len(NOISES)], generator)
        machine.measure(sizes, case.trials)
        measurements = _measurements(medians(machine.samples))
        crossovers = crossovers_of(pairings(measurements, {CELL["study"]: "size"}))
        measured = replace(tables, measurements=measurements, cells=summarise(measurements), crossovers=crossovers)
        verdicts.append(
            str(check_claims({CELL["study"]: study(name=CELL["study"], claims=[claim])}, measured)["verdict"].iloc[0])
        )
    return verdicts


def claim_rows(case: ClaimCase, simulations: int, seed: int) -> pd.DataFrame:
    verdicts = simulate_verdicts(case, simulations, seed)
    shares = {verdict: verdicts.count(verdict) / simulations for verdict in dict.fromkeys(REASONS.values())}
    return pd.DataFrame([asdict(case) | shares])


def _claim(case: ClaimCase) -> tuple[dict[str, Any], tuple[int, ...]]:
    claim = {"statement": case.truth, "source": "ours"}
    if case.truth in (RATIO_INSIDE, RATIO_AT_END):
        sides = {"slow": {"device": BASELINE}, "fast": {"device": "cuda"}}
        return claim | {"speedup_between": {**sides, "range": RATIO_RANGE}}, SIZES[-1:]
    if case.truth in BELOW:
        sides = {"of": {"device": BASELINE}, "over": {"device": "cuda"}}
        return claim | {"ratio_below": {"metric": "step_time_s", **sides, "limit": LIMIT}}, SIZES[-1:]
    return claim | {"crossover_between": {"range": RANGE}}, SIZES


def _advantage(case: ClaimCase, generator: np.random.Generator) -> Callable[[Floats], Floats]:
    """The true ln(CPU time / GPU time) as a function of size."""
    if case.truth == EQUAL:
        return np.zeros_like
    if case.truth in BELOW:
        return lambda sizes: np.full(len(sizes), math.log(BELOW[case.truth]))
    low, high = RATIO_RANGE if case.truth in (RATIO_INSIDE, RATIO_AT_END) else RANGE
    at_end = case.truth in (AT_END, RATIO_AT_END)
    true = (
        float(generator.choice([low, high])) if at_end else math.exp(generator.uniform(math.log(low), math.log(high)))
    )
    if case.truth in (RATIO_INSIDE, RATIO_AT_END):
        return lambda sizes: np.full(len(sizes), math.log(true))
    return crossing_at(case.shape, true)


def _measurements(cells: Mapping[float, tuple[Floats, Floats]]) -> pd.DataFrame:
    """One row per trial, from ln(seconds) by size on the CPU and on the GPU."""
    rows = [
        CELL
        | {"batch_size": 1, "size": int(size), "machine": "here", "device": device, "trial": number}
        | {"parameters": int(size), "status": "ok", "flag_names": [], "step_time_s": math.exp(log)}
        for size, sides in cells.items()
        for device, logs in zip((BASELINE, "cuda"), sides, strict=True)
        for number, log in enumerate(logs, start=1)
    ]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=2000, output="results/checks/claims.csv")
    verdicts = simulate_cases(claim_rows, claim_cases(), options)
    write_csv(verdicts, options.output)
    print(verdicts.round(3).to_string(index=False))

"""Simulate jobs with a known payback, for the coverage of its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from simulation import simulate_cases, simulation_options

from crossover.compare.crossover_curve import advantages_of_cells
from crossover.compare.intervals import Interval
from crossover.compare.payback import RunCosts, payback
from crossover.tables.frames import write_csv

STARTUP_S = 2.5
"""Mean start-up time of the side with the faster steps."""
SLOWER_STARTUP_S = 0.5
STEP_S = 1e-3
"""Mean time of a step on the faster side."""
TRIALS = (3, 4, 8)
SPREADS = (0.02, 0.05, 0.1, 0.25)
SPEEDUPS = (1.2, 2.0, 10.0)
CORRELATIONS = (0.0, 0.8)
"""Correlations between start-up and step time of a trial, on the log scale: a slow process may be slow in both."""


@dataclass(frozen=True)
class PaybackCase:
    trials: int
    spread: float
    """Standard deviation of start-ups and steps between trials, on the log scale."""
    speedup: float
    correlation: float

    @property
    def truth(self) -> float:
        """The number of steps at which both sides take equally long on average."""
        return (STARTUP_S - SLOWER_STARTUP_S) / (STEP_S * (self.speedup - 1))


def payback_cases() -> Iterator[PaybackCase]:
    for trials in TRIALS:
        for spread in SPREADS:
            for speedup in SPEEDUPS:
                yield from (PaybackCase(trials, spread, speedup, correlation) for correlation in CORRELATIONS)


def payback_rows(case: PaybackCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row: the share of simulations with a payback and, among these, the coverage of the interval, the share of
    open intervals, and the median half width on the log scale."""
    generator = np.random.default_rng([seed, case.trials, *(int(100 * x) for x in (case.spread, case.speedup))])
    covariance = case.spread**2 * np.array([[1, case.correlation], [case.correlation, 1]])

    def draw(startup_s: float, step_s: float) -> RunCosts:
        logs = generator.multivariate_normal([-(case.spread**2) / 2] * 2, covariance, case.trials)
        startups_s, steps_s = ((startup_s, step_s) * np.exp(logs)).T.tolist()
        return RunCosts(startups_s, steps_s)

    pairs = ((draw(STARTUP_S, STEP_S), draw(SLOWER_STARTUP_S, STEP_S * case.speedup)) for _ in range(simulations))
    intervals = [interval for pair in pairs if (interval := payback(*pair, _sign(*pair))) is not None]
    ends = [_ends(interval) for interval in intervals]
    covered = [low <= case.truth <= high for low, high in ends]
    widths = [math.log(high / low) / 2 if 0 < low <= high < math.inf else math.inf for low, high in ends]
    row = {
        "found": len(intervals) / simulations,
        "coverage": np.mean(covered) if covered else math.nan,
        "open": np.mean([high == math.inf for _, high in ends]) if ends else math.nan,
        "half_width": np.median(widths) if widths else math.nan,
    }
    return pd.DataFrame([asdict(case) | row])


def _sign(contender: RunCosts, baseline: RunCosts) -> float:
    """Which side has the faster steps by the crossover of a series that has only this size."""
    advantages = advantages_of_cells({1.0: (np.log(baseline.steps_s), np.log(contender.steps_s))})
    return float(advantages.sure_signs().item())


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low or 0.0, math.inf if interval.high is None else interval.high


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=3000, output="results/checks/payback.csv")
    coverage = simulate_cases(payback_rows, payback_cases(), options)
    write_csv(coverage, options.output)
    print(
        coverage.groupby(["speedup", "spread", "trials"])[["found", "coverage", "open", "half_width"]].mean().round(3)
    )
    wrong = coverage["found"] * (1 - coverage["coverage"])
    print(f"Largest share of all simulations whose interval misses the truth: {wrong.max():.3f}")

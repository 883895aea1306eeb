"""Simulates crossovers whose truth is known: how often our interval holds it, and what refinement saves."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd

from crossover.checks.coverage import INSIDE, cases, coverage_rows, savings
from crossover.config.options import new_parser, positive, seed
from crossover.errors import one_line_errors
from crossover.tables.frames import write_csv


def tables(simulations: int, seed: int, processes: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row a case, method and status; one row a case and dense grid, from a tenth of the simulations."""
    every = cases()
    saving = [case for case in every if case.crossing == INSIDE and case.factor == 3]
    with ProcessPoolExecutor(processes) as pool:
        coverage = pool.map(partial(coverage_rows, simulations=simulations, seed=seed), every)
        saved = pool.map(partial(savings, simulations=max(simulations // 10, 20), seed=seed), saving)
        return pd.concat(coverage, ignore_index=True), pd.concat(saved, ignore_index=True)


def main(arguments: list[str]) -> None:
    """Simulate, write both tables and print what they amount to."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", default=500, type=positive, help="of each case")
    parser.add_argument("--seed", default=0, type=seed)
    parser.add_argument("--processes", default=os.cpu_count(), type=positive)
    parser.add_argument("--output", default=Path("results/checks/coverage.csv"), type=Path)
    options = parser.parse_args(arguments)
    # Each process has one core; a second thread of the numerical libraries would only wait for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    coverage, saved = tables(options.simulations, options.seed, options.processes)
    write_csv(coverage, options.output)
    write_csv(saved, options.output.with_suffix(".savings.csv"))
    inside, found = coverage["crossing"] == INSIDE, coverage["status"].isin(["bracketed", "reversed", "multiple"])
    columns = ["share", "coverage", "half_width", "error"]
    by_shape = coverage[inside & (coverage["status"] == "bracketed")].groupby(["shape", "trials", "method"])[columns]
    invented = coverage[~inside & (coverage["method"] == "ours")].assign(share=coverage["share"].where(found, 0))
    print("Crossings within the range\n", by_shape.mean().round(3).to_string(), "\n", sep="")
    print("Crossings that are not there: largest share of simulations that found one")
    print(invented.groupby(["crossing", "trials"])["share"].max().unstack().round(3).to_string(), "\n", sep="")
    print("Timed seconds of refinement and of dense grids\n", saved.round(3).to_string(index=False), sep="")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

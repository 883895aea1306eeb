"""Simulates jobs whose payback is known: how often the 95 % set of the number of steps covers it."""

from __future__ import annotations

from payback_coverage import payback_cases, payback_rows
from simulation import simulate_cases, simulation_options

from crossover.tables.frames import write_csv


def main(arguments: list[str]) -> None:
    """Simulate, write a table with one row a case, and print it by speed-up, spread and trials."""
    options = simulation_options(__doc__, arguments, simulations=3000, output="results/checks/payback.csv")
    coverage = simulate_cases(payback_rows, payback_cases(), options)
    write_csv(coverage, options.output)
    print(
        coverage.groupby(["speedup", "spread", "trials"])[["found", "coverage", "open", "half_width"]].mean().round(3)
    )
    wrong = coverage["found"] * (1 - coverage["coverage"])
    print(f"Largest share of all simulations whose interval misses the truth: {wrong.max():.3f}")

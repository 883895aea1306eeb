"""Simulates claims whose truth is known: how often they get which verdict, above all a false `differs`."""

from __future__ import annotations

import sys

from crossover.checks.claims import claim_cases, claim_rows
from crossover.checks.simulation import simulate_cases, simulation_options
from crossover.errors import one_line_errors
from crossover.tables.frames import write_csv


def main(arguments: list[str]) -> None:
    """Simulate, write a table with one row a case, and print it."""
    options = simulation_options(__doc__, arguments, simulations=2000, output="results/checks/claims.csv")
    verdicts = simulate_cases(claim_rows, claim_cases(), options)
    write_csv(verdicts, options.output)
    print(verdicts.round(3).to_string(index=False))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

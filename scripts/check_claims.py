"""Simulates claims whose truth is known: how often they get which verdict, above all a false `differs`."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd

from crossover.checks.claims import claim_cases, claim_rows
from crossover.config.options import new_parser, positive, seed
from crossover.errors import one_line_errors
from crossover.tables.frames import write_csv


def main(arguments: list[str]) -> None:
    """Simulate, write a table with one row a case, and print it."""
    parser = new_parser(__doc__)
    parser.add_argument("--simulations", default=2000, type=positive, help="of each case")
    parser.add_argument("--seed", default=0, type=seed)
    parser.add_argument("--processes", default=os.cpu_count(), type=positive)
    parser.add_argument("--output", default=Path("results/checks/claims.csv"), type=Path)
    options = parser.parse_args(arguments)
    # Each process has one core; a second thread of the numerical libraries would only wait for it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    rows_of = partial(claim_rows, simulations=options.simulations, seed=options.seed)
    with ProcessPoolExecutor(options.processes) as pool:
        verdicts = pd.concat(pool.map(rows_of, claim_cases()), ignore_index=True)
    write_csv(verdicts, options.output)
    print(verdicts.round(3).to_string(index=False))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

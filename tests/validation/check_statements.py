"""Count the false statements of reports on runs of a CPU and a GPU in which nothing differs from anything.

    python tests/validation statements --simulations=100

Rows of all cells of the default run and of config/full.yaml are made up, and analysed as in a run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from simulation import simulate_cases, simulation_options
from statements import false_statements, null_rows, report_on, studies_of

from crossover.tables.frames import write_csv


@dataclass(frozen=True)
class StatementsCase:
    config: str
    """`config` for the default run, or `full`."""
    trials: int
    spread: float
    """Standard deviation of ln(time) between trials."""


CASES = [
    StatementsCase(config, trials, spread)
    for config in ("config", "full")
    for trials, spread in ((3, 0.1), (8, 0.1), (8, 0.03))
]


def statement_rows(case: StatementsCase, simulations: int, seed: int) -> pd.DataFrame:
    """One row: statements of a report, false ones, and the largest number of false ones that a study has on average."""
    studies = studies_of(case.config)
    reports = []
    for number in range(simulations):
        draw = np.random.default_rng([seed, number, case.trials])
        reports.append(false_statements(report_on(studies, null_rows(studies, case.trials, case.spread, draw))))
    statements = pd.concat(reports)
    of_studies = statements.groupby(level=0).sum() / simulations
    found = {
        "studies": len(of_studies),
        "statements": len(statements) / simulations,
        "false": statements.sum() / simulations,
        "false_of_worst_study": of_studies.max(),
    }
    return pd.DataFrame([asdict(case) | found])


def main(arguments: list[str]) -> None:
    options = simulation_options(__doc__, arguments, simulations=200, output="results/checks/statements.csv")
    rows = simulate_cases(statement_rows, CASES, options)
    write_csv(rows, options.output)
    print(rows.round(3).to_string(index=False))

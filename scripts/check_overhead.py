"""Shows what the trials of a finished run took beside warm-up, timing and memory pass, Snakemake's share included."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import one_line_errors
from crossover.tables.frames import read_table, write_csv
from crossover.tables.registry import CELL_AXES

MEASURING = ["warmup_s", "timed_s", "memory_pass_s"]
"""Columns with the seconds that a trial exists for."""


def trial_costs(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row a trial: seconds until the next trial started, and those of them that were not measuring.

    Left out are trials that did not end ok, and those after which the run paused (more than a minute without
    measuring).
    """
    ordered = measurements.assign(start=pd.to_datetime(measurements["started_at"])).sort_values("start")
    following = ordered["start"].shift(-1) - ordered["start"]
    ordered["from_start_to_start_s"] = following.dt.total_seconds()
    ordered["measuring_s"] = ordered[MEASURING].sum(axis=1)
    ordered["cost_s"] = ordered["from_start_to_start_s"] - ordered["measuring_s"]
    whole = (ordered["status"] == "ok") & (ordered["cost_s"] < 60)
    columns = [*CELL_AXES, "trial", "isolation", "from_start_to_start_s", "measuring_s", "cost_s"]
    return ordered.loc[whole, columns].reset_index(drop=True)


def main(arguments: list[str]) -> None:
    """Print the seconds by device, isolation and number of the trial."""
    parser = new_parser(__doc__)
    parser.add_argument("results", default=Path("results"), nargs="?", type=Path, help="results folder of the run")
    parser.add_argument("--output", type=Path, help="CSV file to write, one row a trial")
    options = parser.parse_args(arguments)
    costs = trial_costs(read_table(options.results / "measurements.parquet"))
    if options.output:
        write_csv(costs, options.output)
    by = costs.groupby(["device", "isolation", "trial"])["cost_s"]
    print(by.describe(percentiles=[0.5, 0.9])[["count", "50%", "90%"]].round(3).to_string())


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

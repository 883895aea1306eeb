"""Shows what the trials of a finished run took beside warm-up, timing and memory pass, Snakemake's share included."""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.checks.overhead import trial_costs
from crossover.config.options import new_parser
from crossover.errors import one_line_errors
from crossover.tables.frames import read_table, write_csv


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

"""Measures cells in turn by a fork of the trial server and by a fresh process, and compares the two."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crossover.checks.checks import pair_table
from crossover.checks.paired_trials import collect_pairs, measure_trial
from crossover.errors import UserError, one_line_errors
from crossover.tables.frames import write_csv

SIDES = ("process", "server")
TOLERANCE = 0.04
CELL = ["workload", "size", "device"]


def measure_pair(options: list[str], pair: int) -> dict[str, object]:
    """Measure a cell both ways, in turns first; returns its axes and both times in seconds."""
    found: dict[str, object] = {}
    for isolation in SIDES if pair % 2 else SIDES[::-1]:
        row = measure_trial([*options, f"--trial={pair + 2}", f"--isolation={isolation}"])
        if row["isolation"] != isolation:
            raise UserError(f"isolation '{isolation}' cannot be had here: the trial's own words above say why")
        found |= {axis: row[axis] for axis in CELL} | {isolation: row["step_time_s"]}
    return found


def main(arguments: list[str]) -> None:
    """Alternate, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", nargs="+", required=True, help="options of measure_cell.py, one string a cell")
    parser.add_argument("--pairs", default=20, type=int)
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write; the pairs lie beside it")
    options = parser.parse_args(arguments)
    samples = collect_pairs(options.trials, options.pairs, options.output.with_suffix(".pairs.csv"), measure_pair)
    table = pair_table(samples, CELL, *SIDES, TOLERANCE)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Measures cells by a fork of the trial server and by a fresh process, in turns, and compares the two.

Options that are not listed here are passed on to measure_cell.py, such as --timed-max-s=0.3.
"""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.checks.pairs import check_cell, collect_pairs, measure_trial, pair_table, trial_commands
from crossover.config.options import device, new_parser, positive
from crossover.errors import UserError, one_line_errors
from crossover.tables.frames import write_csv

WAYS = ("process", "server")
CELL = ["workload", "size", "device"]
CELLS = (("disc_mlp", 100, 3), ("disc_mlp", 100, 10), ("higgs_mlp", 32, 1000), ("linear_stack", 512, 2048))
"""Workload, batch size and size: small steps, in which the host decides, and large ones."""


def measure_pair(options: list[str], pair: int) -> dict[str, object]:
    """Measure a cell both ways, the first one alternating; returns its axes and both times in seconds."""
    found: dict[str, object] = {}
    for isolation in WAYS if pair % 2 else WAYS[::-1]:
        row = measure_trial([*options, f"--trial={pair + 2}", f"--isolation={isolation}"])
        if row["isolation"] != isolation:
            raise UserError(f"isolation '{isolation}' is not available here; the trial's output above says why")
        found |= {axis: row[axis] for axis in CELL} | {isolation: row["step_time_s"]}
    return found


def main(arguments: list[str]) -> None:
    """Measure the pairs, write their table and print it."""
    parser = new_parser(__doc__)
    parser.add_argument("--devices", nargs="+", default=["cpu"], type=device, help="devices to measure on")
    parser.add_argument("--pairs", default=20, type=positive, help="pairs of each cell")
    parser.add_argument("--output", default=Path("results/checks/isolation.csv"), type=Path, help="CSV file to write")
    options, more = parser.parse_known_args(arguments)
    cells = [check_cell(*cell, device) for device in options.devices for cell in CELLS]
    trials = trial_commands(cells, options.output.parent, more)
    samples = collect_pairs(trials, options.pairs, options.output.with_suffix(".pairs.csv"), measure_pair)
    table = pair_table(samples, CELL, *WAYS)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

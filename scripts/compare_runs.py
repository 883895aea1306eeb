"""Compares two runs cell by cell and prints the outcome.

python scripts/compare_runs.py results results/second
python scripts/compare_runs.py results:disc_depth results:disc_again
"""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.config.options import new_parser
from crossover.errors import one_line_errors
from crossover.report.compared_runs import comparison_text, read_pair
from crossover.statistics.run_comparison import compare_runs
from crossover.tables.frames import write_csv


def main(arguments: list[str]) -> None:
    """Compare, print the tables, and write all cells if asked to."""
    parser = new_parser(__doc__)
    for name in ("first", "second"):
        parser.add_argument(name, help="a results folder, or folder:study for one study of it")
    parser.add_argument("--output", type=Path, help="CSV file to write, one row a cell")
    options = parser.parse_args(arguments)
    first, second = read_pair(options.first, options.second)
    comparison = compare_runs(first, second)
    if options.output:
        write_csv(comparison, options.output)
    print(comparison_text(comparison, first, second))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

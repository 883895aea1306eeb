"""Compare two runs cell by cell, print the result, and optionally exit with status 1 if the second run is slower.

python scripts/compare_runs.py results results/second
python scripts/compare_runs.py results:disc_depth results:disc_again
python scripts/compare_runs.py old new --fail-on slower --by 5% --calibrate same1 same2 same3 same4 same5

With --fail-on, the exit status is 1 if any cell is significantly slower by more than the limit, with a correction for
the number of cells. It is 2 if cells are missing, have a single trial or vary too much, or the runs are not comparable,
and 0 otherwise.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd

from crossover.compare.intervals import SLOWER
from crossover.config.options import new_parser, refusal
from crossover.errors import exit_with_status
from crossover.files import atomic_path
from crossover.tables.frames import write_csv
from crossover.topics.gate.gate import COMPARABLE_IN, EXIT_STATUSES, gate_of
from crossover.topics.gate.table import MARGIN, compare_runs
from crossover.topics.gate.text import (
    comparison_text,
    gate_markdown,
    gate_notes,
    gate_record,
    read_identical,
    read_pair,
)


def main(arguments: list[str]) -> int:
    """Print the comparison, write the requested files, and return the exit status."""
    parser = new_parser(__doc__)
    for name in ("first", "second"):
        parser.add_argument(name, help="a results folder, or folder:study for one study of it")
    parser.add_argument("--output", type=Path, help="CSV file to write, one row per cell")
    gate_options = parser.add_argument_group("gate")
    gate_options.add_argument("--fail-on", choices=[SLOWER], help="exit with status 1 if the second run is slower")
    gate_options.add_argument(
        "--by", type=share, help=f"smallest slowdown that fails (default: {MARGIN:.0%})".replace("%", "%%")
    )
    gate_options.add_argument(
        "--calibrate",
        nargs="+",
        default=(),
        metavar="RUN",
        help="runs of identical code, from whose differences the limit is derived",
    )
    gate_options.add_argument(
        "--allow",
        nargs="+",
        default=(),
        choices=COMPARABLE_IN,
        help="what may differ between the runs, such as the code under test",
    )
    gate_options.add_argument("--json", type=Path, help="JSON file to write")
    gate_options.add_argument("--markdown", type=Path, help="Markdown file to write, for a pull request")
    options = parser.parse_args(arguments)
    gate_is_asked = options.by is not None or options.calibrate or options.allow or options.json or options.markdown
    if gate_is_asked and not options.fail_on:
        parser.error("--by, --calibrate, --allow, --json and --markdown need --fail-on slower")
    first, second = read_pair(options.first, options.second)
    if not options.fail_on:
        print_comparison(compare_runs(first, second), first, second, options.output)
        return 0
    identical = read_identical(options.calibrate, second) if options.calibrate else {}
    gate = gate_of(first, second, MARGIN if options.by is None else options.by, identical, options.allow)
    print_comparison(gate.cells, first, second, options.output)
    notes = gate_notes(gate, first, second)
    markdown = gate_markdown(gate, notes)
    print(f"\n{markdown}", end="")
    texts = {options.json: json.dumps(gate_record(gate, notes), indent=1) + "\n", options.markdown: markdown}
    for path, text in texts.items():
        if path is not None:
            with atomic_path(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
    return EXIT_STATUSES[gate.outcome]


def print_comparison(cells: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame, output: Path | None) -> None:
    """Print the comparison of two runs, and write its cells as CSV."""
    if output:
        write_csv(cells, output)
    print(comparison_text(cells, first, second))


def share(text: str) -> float:
    """Parse a share such as 5% or 0.05, at most 100 %."""
    value = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)( ?%)?", text, re.ASCII)
    number = float(value[1]) / (100 if value[2] else 1) if value else 2.0
    if number > 1:
        raise refusal(text, "a share, such as 5% or 0.05, at most 100%")
    return number


if __name__ == "__main__":
    exit_with_status(main)

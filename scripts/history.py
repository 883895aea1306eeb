"""Shows how the cells of a machine went over many runs, and at which runs they became slower or faster.

python scripts/history.py results/nightly/* --output=results/history
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.figures.history import cell_name, draw_history
from crossover.report.compared_runs import read_trials_of
from crossover.statistics.history import LEAST_RUNS, history_of
from crossover.tables.frames import records, write_csv


def main(arguments: list[str]) -> None:
    """Write the history as a table and a figure, and print the changes."""
    parser = new_parser(__doc__)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="results folders of finished runs, in any order")
    parser.add_argument("--output", type=Path, default=Path("results/history"), help="folder to write to")
    options = parser.parse_args(arguments)
    if len({*options.folders}) < 2 * LEAST_RUNS:
        raise UserError(
            f"{len({*options.folders})} runs; allowed: at least {2 * LEAST_RUNS}, for a level before and after"
        )
    history = history_of({name: read_trials_of(name) for name in options.folders})
    write_csv(history, options.output / "history.csv")
    draw_history(history, options.output / "history.svg")
    print(changes_text(history))


def changes_text(history: pd.DataFrame) -> str:
    """One line for each change, the latest run first."""
    changed = history[history["ratio"].notna()].sort_values("started_at", ascending=False, kind="stable")
    lines = [
        f"{row['run']} ({str(row['started_at'])[:10]}, {row['code_version'] or 'no commit'}): "
        f"{cell_name(row, history)} {change_words(row['ratio'])} (ratio 95 % CI {row['ratio_low']:.3f} to "
        f"{row['ratio_high']:.3f})"
        for row in records(changed)
    ]
    return "\n".join(lines or ["No cell changed."])


def change_words(ratio: float) -> str:
    """'1.10x slower' or '1.20x faster'."""
    return f"{ratio:.2f}x faster" if ratio > 1 else f"{1 / ratio:.2f}x slower"


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Show the times of a machine's cells over many runs, and the runs at which they became slower or faster.

python scripts/history.py results/nightly/* --output=results/history
"""

from __future__ import annotations

import sys
from pathlib import Path

from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.tables.frames import records, write_csv
from crossover.topics.gate.figures import cell_name, draw_history
from crossover.topics.gate.history import LEAST_RUNS, LINE_AXES, history_of
from crossover.topics.gate.text import read_trials_of


def main(arguments: list[str]) -> None:
    """Write the history as a table and a figure, and print the changes, latest first."""
    parser = new_parser(__doc__)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="results folders of finished runs, in any order")
    parser.add_argument("--output", type=Path, default=Path("results/history"), help="folder to write to")
    options = parser.parse_args(arguments)
    runs = {name: read_trials_of(name) for name in options.folders}
    if len(runs) < 2 * LEAST_RUNS:
        raise UserError(f"{len(runs)} runs; allowed: at least {2 * LEAST_RUNS}, half of them before a change")
    history = history_of(runs)
    write_csv(history, options.output / "history.csv")
    draw_history(history, options.output / "history.svg")
    runs_of_cells = history.groupby(LINE_AXES, dropna=False)["run"].size()
    judged = (runs_of_cells >= 2 * LEAST_RUNS).sum()
    changed = records(history[history["ratio"].notna()].sort_values("run_started_at", ascending=False, kind="stable"))
    for row in changed:
        ratio, commit = row["ratio"], row["code_version"] or "no commit"
        words = f"{ratio:.2f}x faster" if ratio > 1 else f"{1 / ratio:.2f}x slower"
        print(f"{row['run']} ({str(row['run_started_at'])[:10]}, {commit}): {cell_name(row, history)} {words}")
    if judged and not changed:
        print("No cell changed.")
    print(f"{judged} of {len(runs_of_cells)} cells judged: in at least {2 * LEAST_RUNS} of the {len(runs)} runs")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

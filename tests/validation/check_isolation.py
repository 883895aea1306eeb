"""Measure cells alternately in a fork of the trial server and in a fresh process, and compare their step times.

    python tests/validation isolation --devices cpu cuda --minutes=8

The table has the standard deviation of the logarithm of the step time with each method, their ratio, and the ratio of
the step times. An interrupted check can be continued, and extended with more minutes or pairs.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from pairs import check_cell, collect_pairs, measure_trial, pair_options, trial_commands, write_comparison

from crossover.config.studies import PRESETS
from crossover.errors import UserError

ISOLATIONS = ("process", "server")
CELL = ["workload", "size", "device"]
CELLS = {
    "small": ("disc_mlp", 100, 3),
    "deep": ("disc_mlp", 100, 10),
    "wide": ("higgs_mlp", 32, 1000),
    "large": ("linear_stack", 512, 2048),
}
"""Workload, batch size and size of cells with small steps, which depend on the host, and of cells with large ones."""
SHORT = asdict(PRESETS["quick"].effort)
"""The effort of a quick run, so that more pairs fit into the time. Its trials vary as much as longer ones."""


def measure_pair(options: list[str], pair: int) -> dict[str, object]:
    """In alternating order; returns the cell's axes and both step times in s."""
    times: dict[str, object] = {}
    for isolation in ISOLATIONS if pair % 2 else ISOLATIONS[::-1]:
        job = json.dumps({**json.loads(options[0]), "isolation": isolation})
        row = measure_trial([job, *options[1:], f"--trial={pair + 2}"])
        if row["isolation"] != isolation:
            raise UserError(f"isolation '{isolation}' is not available here; the trial's output above says why")
        times |= {axis: row[axis] for axis in CELL} | {isolation: row["step_time_s"]}
    return times


def main(arguments: list[str]) -> None:
    parser = pair_options(__doc__, CELLS, ["small"])
    parser.add_argument("--output", default=Path("results/checks/isolation.csv"), type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    until_s = time.monotonic() + 60 * options.minutes
    cells = [check_cell(*CELLS[name], device) for device in options.devices for name in options.cells]
    trials = trial_commands(cells, options.output.parent, effort=SHORT)
    path = options.output.with_suffix(".pairs.csv")
    samples = collect_pairs(trials, options.pairs, path, measure_pair, lambda: time.monotonic() < until_s)
    write_comparison(samples, CELL, *ISOLATIONS, options.output)

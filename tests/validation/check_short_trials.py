"""Measures cells by trials of the default effort and by long ones, in turns, and compares spreads and means.

    python tests/validation short_trials --devices cpu cuda --minutes=8

Long trials warm up for two seconds and time three. The table has the ratio of both times, short over long, and the
standard deviations of their logarithms. An interrupted check goes on, and more minutes or pairs add to its pairs.
"""

from __future__ import annotations

import time
from dataclasses import fields, replace
from pathlib import Path

from pairs import check_cell, collect_pairs, measure_trial, pair_table, spread_table, trial_commands

from crossover.config.options import device, new_parser, option_name, positive
from crossover.config.studies import Effort
from crossover.config.words import CUDA_GRAPH, EXECUTIONS, is_cpu
from crossover.tables.frames import write_csv

LENGTHS = ("long", "short")
CELL = ["workload", "size", "execution", "device"]
CELLS = {"tiny": ("disc_mlp", 100, 4), "wide": ("higgs_mlp", 32, 1000), "large": ("linear_stack", 512, 4096)}
"""Workload, batch size and size, of steps from 0.05 to 100 ms."""
LONG = Effort(warmup_min_s=2.0, warmup_accelerator_min_s=2.0, timed_min_s=3.0, timed_max_s=3.0)


def measure_pair(options: list[str], pair: int) -> dict[str, object]:
    """Measure a cell at both lengths, the first one alternating; returns its axes and both times in seconds."""
    measured: dict[str, object] = {}
    for length in LENGTHS if pair % 2 else LENGTHS[::-1]:
        effort = LONG if length == "long" else Effort()
        numbers = [f"{option_name(field.name)}={getattr(effort, field.name)}" for field in fields(Effort)]
        row = measure_trial([*options, f"--trial={pair + 2}", *numbers])
        measured |= {axis: row[axis] for axis in CELL} | {length: row["step_time_s"]}
    return measured


def main(arguments: list[str]) -> None:
    """Measure the pairs, write their table and print it."""
    parser = new_parser(__doc__)
    parser.add_argument("--devices", nargs="+", default=["cpu"], type=device, help="devices to measure on")
    parser.add_argument("--cells", nargs="+", default=[*CELLS], choices=CELLS, help="cells to measure on each")
    parser.add_argument("--executions", nargs="+", default=["eager"], choices=EXECUTIONS)
    parser.add_argument("--pairs", default=40, type=positive, help="most pairs of each cell")
    parser.add_argument("--minutes", default=8, type=positive, help="no pair begins after so many minutes")
    parser.add_argument("--output", default=Path("results/checks/short_trials.csv"), type=Path, help="file to write")
    options = parser.parse_args(arguments)
    until_s = time.monotonic() + 60 * options.minutes
    cells = [
        replace(check_cell(*CELLS[name], device), execution=execution)
        for device in options.devices
        for execution in options.executions
        for name in options.cells
        if not (execution == CUDA_GRAPH and is_cpu(device))
    ]
    trials = trial_commands(cells, options.output.parent)
    path = options.output.with_suffix(".pairs.csv")
    samples = collect_pairs(trials, options.pairs, path, measure_pair, lambda: time.monotonic() < until_s)
    table = spread_table(samples, CELL, *LENGTHS).merge(pair_table(samples, CELL, *LENGTHS), on=[*CELL, "pairs"])
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))

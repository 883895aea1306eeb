"""Measures cells alone and beside a trial on every other GPU of this machine, in turns, and compares the two.

Options that are not listed here are passed on to measure_cell.py, such as --timed-max-s=0.3.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pynvml

from crossover.checks.pairs import (
    check_cell,
    collect_pairs,
    measure_trial,
    side_by_side_pair,
    side_by_side_table,
    trial_commands,
)
from crossover.config.options import new_parser, positive
from crossover.errors import UserError, one_line_errors
from crossover.machine.gpus import find_gpus
from crossover.machine.nvml import session
from crossover.tables.frames import write_csv

CELLS = (("disc_mlp", 100, 10), ("higgs_mlp", 32, 100), ("linear_stack", 512, 2048))
"""Workload, batch size and size: two cells that wait for the host, and one that waits for the GPU."""


def gpus_here(most: int | None) -> list[str]:
    """Names of the GPUs that this process may use, at most so many; raises UserError if they are fewer than two."""
    with session(pynvml) as there:
        gpus = list(find_gpus(os.environ, pynvml).visible[:most]) if there else []
    if len(gpus) < 2:
        raise UserError(f"this check needs two NVIDIA GPUs or more; {len(gpus)} may be used")
    return gpus


def measure_pair(options: list[str], pair: int, gpus: list[str]) -> dict[str, Any]:
    """Measure a cell on one GPU alone, and on all at once; the order alternates, the single GPU rotates."""
    # Each trial leases the first free GPU of this list. All know of all, as the trials of a run do.
    first = pair % len(gpus)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join([*gpus[first:], *gpus[:first]])}

    def timed(_number: int) -> dict[str, Any]:
        start = time.monotonic()
        row = measure_trial([*options, f"--trial={pair + 2}"], environment)
        return row | {"seconds": time.monotonic() - start}

    def at_once(count: int) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(timed, range(count)))

    counts = (1, len(gpus))
    found = {count: at_once(count) for count in (counts if pair % 2 else counts[::-1])}
    return side_by_side_pair(found[1][0], found[len(gpus)])


def main(arguments: list[str]) -> None:
    """Measure the pairs, write their table and print it."""
    parser = new_parser(__doc__)
    parser.add_argument("--gpus", type=positive, help="GPUs to use at most; all that are visible by default")
    parser.add_argument("--pairs", default=8, type=positive, help="pairs of each cell")
    parser.add_argument(
        "--output", default=Path("results/checks/side_by_side.csv"), type=Path, help="CSV file to write"
    )
    options, more = parser.parse_known_args(arguments)
    gpus = gpus_here(options.gpus)
    trials = trial_commands([check_cell(*cell, "cuda") for cell in CELLS], options.output.parent, more)
    # This starts the trial server, which would otherwise count in the first pair's throughput.
    measure_trial([*shlex.split(trials[0]), "--trial=1"])
    path = options.output.with_suffix(".pairs.csv")
    samples = collect_pairs(trials, options.pairs, path, partial(measure_pair, gpus=gpus), gpus=len(gpus))
    table = side_by_side_table(samples)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

"""Measures cells in turn alone and beside a trial on every other GPU of this machine, and compares the two."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pynvml

from crossover.checks.beside import Timed, beside_table, pair_of, turned
from crossover.checks.paired_trials import collect_pairs, measure_trial
from crossover.errors import one_line_errors
from crossover.machine.gpus import find_gpus
from crossover.machine.nvml import session
from crossover.tables.frames import write_csv


def gpus_here(most: int) -> list[str]:
    """Names of the GPUs that this process may use, so many at most."""
    with session(pynvml) as there:
        return [gpu.id for gpu in find_gpus(os.environ, pynvml).visible][:most] if there else []


def measure_pair(options: list[str], pair: int, gpus: list[str]) -> dict[str, Any]:
    """Measure a cell on one GPU alone, and on all at once; which comes first, and which GPU it is, alternates."""
    # Each trial leases the first GPU of this list that is free. All know of all, as the trials of a run do.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(turned(gpus, pair))}

    def timed(_number: int) -> Timed:
        start = time.monotonic()
        row = measure_trial([*options, f"--trial={pair + 2}"], environment)
        return Timed(row, time.monotonic() - start)

    def at_once(count: int) -> list[Timed]:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(timed, range(count)))

    counts = (1, len(gpus))
    found = {count: at_once(count) for count in (counts if pair % 2 else counts[::-1])}
    return pair_of(found[1][0], found[len(gpus)])


def main(arguments: list[str]) -> None:
    """Alternate, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", nargs="+", required=True, help="options of measure_cell.py, one string a cell")
    parser.add_argument("--gpus", required=True, type=int, help="GPUs to use, of those that are visible")
    parser.add_argument("--pairs", default=8, type=int)
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write; the pairs lie beside it")
    options = parser.parse_args(arguments)
    gpus = gpus_here(options.gpus)
    # It starts the trial server, which would count in the first pair's throughput.
    measure_trial([*shlex.split(options.trials[0]), "--trial=1"])
    samples = collect_pairs(
        options.trials,
        options.pairs,
        options.output.with_suffix(".pairs.csv"),
        partial(measure_pair, gpus=gpus),
        gpus=len(gpus),
    )
    table = beside_table(samples)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

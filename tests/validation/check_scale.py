"""Measure the overhead of the workflow with grids of cells that do nothing.

Each grid runs in a copy of the workflow in a temporary folder. A thousand cells take about five minutes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import UserError
from crossover.tables.frames import write_csv
from workflow_copy import copy_workflow, write_config

BATCH_SIZES = 10
"""Number of batch sizes, and so of cells per size, in a grid."""

STUDY = "null_grid"

LAST_LINES = 5


def make_grid(folder: Path, cells: int) -> None:
    """Copy the workflow to `folder`, with one trial of each of `cells` cells (a multiple of 10)."""
    copy_workflow(folder)
    (folder / "nothing.py").write_text("def build(size, device, batch_size):\n    return lambda size=size: None\n")
    study = {
        "title": "Cells that do nothing",
        "question": "How much time does the workflow itself take?",
        "model": "nothing.py:build",
        "sizes": list(range(1, cells // BATCH_SIZES + 1)),
        "batch_sizes": list(range(1, BATCH_SIZES + 1)),
        "figures": ["times"],
    }
    config = {"studies": [STUDY], "devices": ["cpu"], "trials": 1}
    write_config(folder, config, {STUDY: study})


def measure_grid(folder: Path, cells: int, snakemake: Sequence[str], environment: Mapping[str, str]) -> pd.DataFrame:
    """Run a grid made by `make_grid`; returns one row per step of the run, with wall time, CPU time and peak memory."""
    table = "results/measurements.parquet"
    steps = {
        "dry-run": ["--dry-run"],
        "measure all cells": [table],
        "collect the rows again": [table, "--force"],
        "from the table to the report": [],
        "nothing to do": [],
    }
    rows = []
    for name, options in steps.items():
        used = run_measured([*snakemake, *options], folder, environment)
        rows.append({"cells": cells, "step": name, **used, "wall_s_per_cell": used["wall_s"] / cells})
    return pd.DataFrame(rows)


def run_measured(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> dict[str, float]:
    """Run a command in a folder and return its wall_s, cpu_s and peak_bytes; raises UserError if it fails.

    cpu_s includes its subprocesses; peak_bytes is the resident memory of the largest process.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            last = " ".join(log.read().split("\n")[-LAST_LINES:])
            raise UserError(f"{shlex.join(command)}: ended with status {process.returncode}: {last}")
    return {"wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss * 1024}


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--cells", nargs="+", default=[1000], type=int, help=f"multiples of {BATCH_SIZES}")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs Snakemake")
    parser.add_argument("--output", default=Path("results/checks/scale.csv"), type=Path, help="CSV file to write")
    options = parser.parse_args(arguments)
    for cells in options.cells:
        if cells % BATCH_SIZES:
            raise UserError(f"--cells: {cells} is not allowed; allowed: multiples of {BATCH_SIZES}")
    snakemake = [options.python, "-m", "snakemake", "--cores", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SNAKEMAKE_")}
    tables = []
    for cells in options.cells:
        with tempfile.TemporaryDirectory(prefix="crossover-scale-") as folder:
            make_grid(Path(folder) / "grid", cells)
            tables.append(measure_grid(Path(folder) / "grid", cells, snakemake, environment))
    table = pd.concat(tables)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))

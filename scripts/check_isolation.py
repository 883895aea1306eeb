"""Measures cells in turn by a fork of the trial server and by a fresh process, and compares the two."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from crossover.analysis.checks import pair_table
from crossover.analysis.tables import read_table, write_csv

SIDES = ("process", "server")
TOLERANCE = 0.04
CELL = ["workload", "size", "device"]


def step_time_s(options: list[str], isolation: str, trial: int, folder: Path) -> tuple[dict[str, object], float]:
    """Measure one trial; returns the axes of its cell and its step time in seconds."""
    row_path = folder / "row.parquet"
    script = Path(__file__).with_name("measure_cell.py")
    command = [sys.executable, str(script), *options, f"--trial={trial}", f"--output={row_path}"]
    subprocess.run([*command, f"--isolation={isolation}"], check=True)
    row = read_table(row_path).iloc[0]
    if (row["status"], row["isolation"]) != ("ok", isolation):
        sys.exit(f"error: {shlex.join(command)}: {row['status']} ({row['isolation']}): {row['reason']}")
    return {axis: row[axis] for axis in CELL}, float(row["step_time_s"])


def measure_pair(options: list[str], pair: int, folder: Path) -> dict[str, object]:
    """Measure a cell both ways, in turns first; returns its axes and both times in seconds."""
    times: dict[str, object] = {}
    for isolation in SIDES if pair % 2 else SIDES[::-1]:
        cell, times[isolation] = step_time_s(options, isolation, pair + 2, folder)
    return cell | times


def main(arguments: list[str]) -> None:
    """Alternate, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", nargs="+", required=True, help="options of measure_cell.py, one string a cell")
    parser.add_argument("--pairs", default=20, type=int)
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write; the pairs lie beside it")
    options = parser.parse_args(arguments)
    pairs_path = options.output.with_suffix(".pairs.csv")
    samples = pd.read_csv(pairs_path) if pairs_path.exists() else pd.DataFrame()
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(len(samples) // len(options.trials), options.pairs):  # goes on where it was interrupted
            rows = [measure_pair(shlex.split(trial), pair, Path(folder)) for trial in options.trials]
            samples = pd.concat([samples, pd.DataFrame(rows)])
            write_csv(samples, pairs_path)
    table = pair_table(samples, CELL, *SIDES, TOLERANCE)
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    main(sys.argv[1:])

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


def step_time_s(options: list[str], isolation: str, trial: int, folder: Path) -> tuple[dict[str, object], float]:
    """Measure one trial; returns the axes of its cell and its step time in seconds."""
    row_path = folder / "row.parquet"
    script = Path(__file__).with_name("measure_cell.py")
    command = [sys.executable, str(script), *options, f"--trial={trial}", f"--output={row_path}"]
    subprocess.run([*command, f"--isolation={isolation}"], check=True)
    row = read_table(row_path).iloc[0]
    if (row["status"], row["isolation"]) != ("ok", isolation):
        sys.exit(f"error: {shlex.join(command)}: {row['status']} ({row['isolation']}): {row['reason']}")
    return {axis: row[axis] for axis in ("study", "protocol", "size", "device")}, float(row["step_time_s"])


def main(arguments: list[str]) -> None:
    """Alternate, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", nargs="+", required=True, help="options of measure_cell.py, one string a cell")
    parser.add_argument("--pairs", default=20, type=int)
    parser.add_argument("--output", required=True, type=Path, help="CSV file to write; the pairs lie beside it")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            for trial in options.trials:
                times = {}
                for isolation in SIDES if pair % 2 else SIDES[::-1]:
                    cell, times[isolation] = step_time_s(shlex.split(trial), isolation, pair + 2, Path(folder))
                rows.append(cell | times)
    samples = pd.DataFrame(rows)
    table = pair_table(samples, ["study", "protocol", "size", "device"], *SIDES, TOLERANCE)
    write_csv(samples, options.output.with_suffix(".pairs.csv"))
    write_csv(table, options.output)
    print(table.to_string(index=False, float_format="%.4g"))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Runs Snakemake and shows where the wall time of the run went.

What is not an option here is passed on: check_wall_time.py --results=results/quick --configfile config/quick.yaml
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from crossover.checks.wall_time import TRIALS, breakdown, job_seconds
from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.tables.frames import read_table, write_csv


def main(arguments: list[str]) -> None:
    """Run Snakemake with the options that are left, then print each part's seconds and percent."""
    parser = new_parser(__doc__)
    parser.add_argument("--results", default=Path("results"), type=Path, help="results folder of the run")
    parser.add_argument("--output", type=Path, help="CSV file to write")
    options, more = parser.parse_known_args(arguments)
    since = time.time()
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "snakemake", "--cores", "1", *more])
    wall_s = time.monotonic() - started
    if done.returncode:
        sys.exit(done.returncode)  # Snakemake has said why
    rows = read_table(options.results / "measurements.parquet")
    rows = rows[pd.to_datetime(rows["started_at"]).map(pd.Timestamp.timestamp) >= since]
    jobs_s = job_seconds(Path(".snakemake/metadata"), since)
    if rows.empty and TRIALS in jobs_s:
        raise UserError(f"--results {options.results}: none of its trials is of this run; give the run's own folder")
    table = breakdown(wall_s, jobs_s, rows["spent_s"].dropna(), rows["timed_s"].sum())
    if options.output:
        write_csv(table, options.output)
    print(f"{wall_s:.1f} s, {len(rows)} trials")
    print(table.to_string(index=False, float_format="%.1f"))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])

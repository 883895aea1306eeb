"""Run Snakemake and show the parts of its wall time, from its records of jobs and the phases of trials.

Other options are passed on to Snakemake, as in wall_time --results=results/quick --configfile config/quick.yaml.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from crossover.config.options import new_parser
from crossover.errors import UserError
from crossover.reading import read_json
from crossover.tables.frames import read_table, write_csv

PARTS = {
    "write_plan": "plan",
    "make_dataset": "datasets",
    "train_model": "trainings",
    "find_largest_batch": "searches",
    "probe_roofs": "roofs",
    "plan_refinement": "refinement",
    "give_first_answer": "first answers",
    "collect_measurements": "collecting",
    "analyse_run": "tables",
    "plot_figures": "figures",
    "render_report": "page",
}
TRIALS = "measure_cell"
"""The rule whose jobs are split by phase."""


def job_seconds(records: Path, since: float) -> dict[str, float]:
    """Total duration in s of each rule's jobs that started after a time, from a `.snakemake/metadata` folder."""
    spans: dict[tuple[str, tuple[str, ...]], tuple[float, float]] = {}
    for path in records.rglob("*"):
        record = read_json(path, "Snakemake's record") if path.is_file() else {}
        if record.get("endtime") and record["starttime"] >= since:
            job = record["rule"], tuple(record["log"])
            _, end = spans.get(job, (0.0, 0.0))
            spans[job] = record["starttime"], max(end, record["endtime"])
    seconds: dict[str, float] = {}
    for (rule, _), (start, end) in spans.items():
        seconds[rule] = seconds.get(rule, 0.0) + end - start
    return seconds


def breakdown(wall_s: float, jobs_s: dict[str, float], phases: Iterable[str], timed_s: float) -> pd.DataFrame:
    """One row for each `part` of a run, with its `seconds` and its `share` of the wall time in percent.

    `phases` is the column `spent_s` of its trials, `timed_s` the sum of their timings. The part of Snakemake is what
    jobs leave of the wall time, which is negative if many ran in parallel.
    """
    spent: dict[str, float] = {}
    for text in phases:
        for phase, seconds in json.loads(text).items():
            spent[phase] = spent.get(phase, 0.0) + seconds
    trials_s = jobs_s.get(TRIALS, 0.0)
    if "warm-up and timing" in spent:
        spent = {"timing": timed_s, "warm-up": spent.pop("warm-up and timing") - timed_s} | spent
    parts = {"process": trials_s - sum(spent.values())} | spent
    parts |= {PARTS.get(rule, rule): seconds for rule, seconds in jobs_s.items() if rule != TRIALS}
    parts["Snakemake"] = wall_s - sum(jobs_s.values())
    table = pd.DataFrame({"part": parts.keys(), "seconds": parts.values()})
    table["share"] = 100 * table["seconds"] / wall_s
    return table.sort_values("seconds", ascending=False, ignore_index=True)


def main(arguments: list[str]) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--results", default=Path("results"), type=Path, help="results folder of the run")
    parser.add_argument("--output", type=Path, help="CSV file to write")
    options, more = parser.parse_known_args(arguments)
    since = time.time()
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "snakemake", "--cores", "1", *more])
    wall_s = time.monotonic() - started
    if done.returncode:
        sys.exit(done.returncode)  # Snakemake has printed the error
    rows = read_table(options.results / "measurements.parquet")
    rows = rows[pd.to_datetime(rows["started_at"]).map(pd.Timestamp.timestamp) >= since]
    jobs_s = job_seconds(Path(".snakemake/metadata"), since)
    if rows.empty and TRIALS in jobs_s:
        raise UserError(f"--results {options.results}: it has no trials of this run; give the run's results folder")
    table = breakdown(wall_s, jobs_s, rows["spent_s"].dropna(), rows["timed_s"].sum())
    if options.output:
        write_csv(table, options.output)
    print(f"{wall_s:.1f} s, {len(rows)} trials")
    print(table.to_string(index=False, float_format="%.1f"))

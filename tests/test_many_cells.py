"""What the workflow itself takes must grow with the number of cells, and no faster: cells that do nothing show it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from crossover.checks.overhead import make_grid
from house import ROOT

pytestmark = pytest.mark.slow

COUNT = """
import sys
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

what, file, *sys.argv[1:] = sys.argv[1:]
count = 0

def of_call(_frame, event, _argument):
    global count
    count += event == "call"

def of_selection(self, jobs, select=JobScheduler.job_selector):
    global count
    count += 1
    return select(self, jobs)

if what == "calls":
    sys.setprofile(of_call)
else:
    JobScheduler.job_selector = of_selection
try:
    main()
finally:
    sys.setprofile(None)
    open(file, "w").write(str(count))
"""


def counted(what: str, folder: Path, *options: str) -> tuple[int, str]:
    """Run Snakemake there; the Python functions that it calls, or how often it selects jobs, and what it says."""
    command = [sys.executable, "-c", COUNT, what, "count", "--cores", "1", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return int((folder / "count").read_text()), done.stdout + done.stderr


def test_a_dry_run_calls_few_functions_for_each_cell(tmp_path: Path) -> None:
    """Their number is the same on every machine, however busy. With each file of the code as an input it was 14,000."""
    calls = {}
    for cells in (100, 300):
        make_grid(ROOT, tmp_path / str(cells), cells)
        calls[cells], said = counted("calls", tmp_path / str(cells), "--dry-run")
        assert re.search(rf"^measure_cell +{cells}$", said, flags=re.MULTILINE)
    assert (calls[300] - calls[100]) / 200 < 5000


def test_jobs_are_looked_for_once_after_each_of_them_up_to_the_report(tmp_path: Path) -> None:
    """A time limit on jobs per second had Snakemake look again every second for each job that had finished."""
    make_grid(ROOT, tmp_path / "grid", 20)
    selections, said = counted("selections", tmp_path / "grid")
    assert selections <= int(re.findall(r"^total +(\d+)$", said, flags=re.MULTILINE)[0]) + 2
    measurements = pd.read_parquet(tmp_path / "grid" / "results" / "measurements.parquet")
    assert set(measurements[["status", "isolation"]].itertuples(index=False, name=None)) == {("ok", "server")}
    assert len(measurements) == 20
    assert "Cells that do nothing" in (tmp_path / "grid" / "results" / "report.html").read_text()
    assert "Nothing to be done" in counted("selections", tmp_path / "grid", "--dry-run")[1]

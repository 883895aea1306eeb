"""What the workflow itself takes must grow with the number of cells, and no faster: cells that do nothing show it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from crossover.checks.overhead import make_grid
from trials import ROOT

COUNT = """
import sys
from snakemake.cli import main

file, *sys.argv[1:] = sys.argv[1:]
count = 0

def of_call(_frame, event, _argument):
    global count
    count += event == "call"

sys.setprofile(of_call)
try:
    main()
finally:
    sys.setprofile(None)
    open(file, "w").write(str(count))
"""


@pytest.mark.slow
def test_a_dry_run_calls_few_functions_for_each_cell(tmp_path: Path) -> None:
    """Their number is the same on every machine, however busy. With each file of the code as an input it was 14,000."""
    calls = {}
    for cells in (100, 300):
        grid = tmp_path / str(cells)
        make_grid(ROOT, grid, cells)
        command = [sys.executable, "-c", COUNT, "count", "--cores", "1", "--dry-run"]
        done = subprocess.run(command, cwd=grid, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"^measure_cell +{cells}$", done.stdout + done.stderr, flags=re.MULTILINE)
        calls[cells] = int((grid / "count").read_text())
    assert (calls[300] - calls[100]) / 200 < 6000

"""The overhead of the workflow, with cells that do nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from check_scale import make_grid
from statements import null_rows, report_on, studies_of

from crossover.config.study import Study

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
    """Unlike time, it does not depend on the machine's load; it was 14,000 with each file of the code as an input."""
    calls = {}
    for cells in (30, 90):
        grid = tmp_path / str(cells)
        make_grid(grid, cells)
        command = [sys.executable, "-c", COUNT, "count", "--cores", "1", "--dry-run"]
        done = subprocess.run(command, cwd=grid, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"^measure_cell +{cells}$", done.stdout + done.stderr, flags=re.MULTILINE)
        calls[cells] = int((grid / "count").read_text())
    assert (calls[90] - calls[30]) / 60 < 6000


def calls_of(function: Callable[[], object]) -> int:
    """The number of Python functions that are called."""
    count = 0

    def of_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(of_call)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def calls_of_analysis(series: int) -> int:
    """The calls for a study with so many series, of 22 rows each."""
    (study,) = (study for study in studies_of("config") if study.name == "disc_depth")
    wide: Study = replace(study, batch_sizes=tuple(range(1, series + 1)), candidates=None, claims=(), published=None)
    rows = null_rows([wide], 1, 0.05, np.random.default_rng(0))
    return calls_of(lambda: report_on([wide], rows))


def test_the_analysis_of_a_further_series_calls_few_functions() -> None:
    """It was 80,000 with each advantage computed three times, and each answer's rows sought in the whole table."""
    calls_of_analysis(3)  # imports and caches, also those of planes
    assert (calls_of_analysis(8) - calls_of_analysis(3)) / 5 < 65_000

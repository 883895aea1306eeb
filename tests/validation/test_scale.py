"""The overhead of the workflow, with cells that do nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from pathlib import Path

import numpy as np
import pytest
from check_scale import make_grid, run_measured
from statements import null_rows, report_on, studies_of

from crossover.config.study import Study
from crossover.errors import UserError
from crossover.topics.crossovers.answers import Crossover, _said_once

CODE = """
import subprocess, sys, time
if len(sys.argv) > 1:
    data = b"x" * 150_000_000
    ends = time.process_time() + 0.3
    while time.process_time() < ends:
        pass
else:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


def test_time_and_memory_of_a_subprocess_count(tmp_path: Path) -> None:
    """The subprocess computes for 0.3 s and uses 150 MB; its parent only waits."""
    script = tmp_path / "script.py"
    script.write_text(CODE)
    used = run_measured([sys.executable, str(script)], tmp_path, os.environ)
    assert used["cpu_s"] >= 0.3
    assert 150e6 < used["peak_bytes"] < 3e9  # this process counts as well, as it starts them
    with pytest.raises(UserError, match="ended with status 3: why"):
        run_measured([sys.executable, "-c", "print('why'); raise SystemExit(3)"], tmp_path, os.environ)


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
    for cells in (100, 300):
        grid = tmp_path / str(cells)
        make_grid(grid, cells)
        command = [sys.executable, "-c", COUNT, "count", "--cores", "1", "--dry-run"]
        done = subprocess.run(command, cwd=grid, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"^measure_cell +{cells}$", done.stdout + done.stderr, flags=re.MULTILINE)
        calls[cells] = int((grid / "count").read_text())
    assert (calls[300] - calls[100]) / 200 < 6000


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
    calls_of_analysis(2)  # imports and caches
    assert (calls_of_analysis(12) - calls_of_analysis(4)) / 8 < 65_000


@pytest.mark.slow
def test_the_analysis_grows_linearly() -> None:
    """With 300, 1,000 and 5,000 rows."""
    calls_of_analysis(2)
    few, more, many = map(calls_of_analysis, (14, 46, 228))
    assert more / few < 4
    assert many / more < 6


def test_five_times_the_answers_take_five_times_as_long_to_say_once() -> None:
    """Each crossover of runs was compared with every crossover of steps, which took 25 times as long."""

    def calls(series: int) -> int:
        alike = dict.fromkeys((entry.name for entry in fields(Crossover) if entry.default is MISSING), "same")
        alike |= dict.fromkeys(("crossover", "crossover_low", "crossover_high"), 1.0)
        answers = [
            Crossover(**alike | {"series": str(index), "cost": cost, "main": True})
            for index in range(series)
            for cost in ("time", "run")
        ]
        said = []
        count = calls_of(lambda: said.extend(_said_once(answers)))
        assert [answer.main for answer in said] == [True, False] * series
        return count

    assert calls(500) <= 6 * calls(100)

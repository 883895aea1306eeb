from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from crossover.checks.job_rate import FIRST, make_bare, mean_interval_s, seconds_per_job
from crossover.errors import UserError

WRITER = """
import sys, time
from pathlib import Path
for number in range(int(sys.argv[1])):
    Path(f"{number}.txt").touch()
    time.sleep(0.01)
if len(sys.argv) > 2:
    time.sleep(1000)
"""


def test_the_first_jobs_do_not_count() -> None:
    """These take 100 s each, the four that count 2 s."""
    times = [100.0 * number for number in range(FIRST)] + [5000.0 + 2 * number for number in range(5)]
    assert mean_interval_s(times[::-1], Path("log")) == 2.0


def test_a_workflow_is_stopped_once_enough_jobs_have_finished(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, "40", "and waits"]
    assert seconds_per_job(command, tmp_path, os.environ, tmp_path / "log", "*.txt", jobs=10) > 0


def test_a_workflow_that_ends_early_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"only 3 jobs finished, and {FIRST + 2} are needed; see .*log"):
        seconds_per_job([sys.executable, "-c", WRITER, "3"], tmp_path, os.environ, tmp_path / "log", "*.txt", jobs=10)


@pytest.mark.parametrize("way", ["shell", "script"])
def test_a_bare_rule_starts_python_for_each_file(tmp_path: Path, way: str) -> None:
    make_bare(tmp_path / way, way, 2)
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    with pytest.raises(UserError, match="only 2 jobs finished"):
        seconds_per_job(command, tmp_path / way, os.environ, tmp_path / "log", "out/*.txt", jobs=10)

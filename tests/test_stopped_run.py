"""A run or one of its trials that gets a SIGTERM, as from a batch system: it is stopped, and nothing has failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from processes import PATIENCE_S, wait_for
from workflow_copy import WorkflowCopy

HANGING = """
import os, sys, time
from pathlib import Path
from crossover.measurement.process.supervision import exit_statuses

with exit_statuses():
    Path("begun").write_text(str(os.getpid()))
    time.sleep(1000)
"""


def test_a_sigterm_is_a_stop_and_no_failure(tmp_path: Path) -> None:
    """The first trial is stopped, after which the run goes on; then the run and its second trial are."""
    workflow = WorkflowCopy(tmp_path / "crossover")
    workflow.pretend()
    (workflow.path / "scripts" / "measure_cell.py").write_text(HANGING)
    begun = workflow.path / "begun"
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    with subprocess.Popen(
        command, cwd=workflow.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        wait_for(lambda: begun.exists() and begun.read_text(), "the first trial")
        trial = int(begun.read_text())
        begun.unlink()
        os.kill(trial, signal.SIGTERM)
        wait_for(lambda: begun.exists() and begun.read_text(), "the second trial")
        os.killpg(run.pid, signal.SIGTERM)
        output, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode != 0
    assert re.search(
        r"^Stopped: \d jobs? \(measure_cell \d\)\.\nThe same command again measures what is missing", output, re.M
    ), output
    for word in ("Failed", "failed", "Error in rule"):
        assert word not in output, output
    assert list(workflow.results.rglob("trial-*.parquet")) == []

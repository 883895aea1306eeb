"""The workload `null`, measured without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossover.config.workloads import NULL
from trials import SCRIPT, read_row


@pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux")
@pytest.mark.parametrize("isolation", ["server", "process"])
def test_the_null_workload_needs_no_torch(tmp_path: Path, isolation: str) -> None:
    """A module `torch` that fails to import stands for a machine without torch."""
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    options = ["--workload=null", "--size=1", "--batch-size=1", "--device=cpu", f"--isolation={isolation}"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options, "--dataset=", f"--output={tmp_path / 'row.parquet'}"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    row = read_row(tmp_path / "row.parquet")
    assert (row["status"], row["isolation"], row["workload"]) == ("ok", isolation, NULL)

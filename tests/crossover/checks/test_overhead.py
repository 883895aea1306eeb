from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from crossover.checks.overhead import run_measured
from crossover.errors import UserError

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


def test_a_childs_time_and_memory_count(tmp_path: Path) -> None:
    """The child computes for 0.3 s and holds 150 MB; its parent only waits."""
    script = tmp_path / "script.py"
    script.write_text(CODE)
    used = run_measured([sys.executable, str(script)], tmp_path, os.environ)
    assert used["cpu_s"] >= 0.3
    assert 150e6 < used["peak_bytes"] < 3e9  # this process counts as well, when it starts them
    with pytest.raises(UserError, match="ended with status 3: why"):
        run_measured([sys.executable, "-c", "print('why'); raise SystemExit(3)"], tmp_path, os.environ)

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.checks.overhead import run_measured, trial_costs
from crossover.errors import UserError

Row = Callable[..., dict[str, Any]]

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


def test_the_cost_of_a_trial_is_the_way_to_the_next_without_its_measuring(row: Row) -> None:
    def trial(number: int, second: float, status: str = "ok") -> dict[str, Any]:
        started = f"2026-01-01T00:{int(second // 60):02}:{second % 60:06.3f}+00:00"
        measured = {"warmup_s": 1.0, "timed_s": 2.0, "memory_pass_s": 0.5}
        return row(trial=number, started_at=started, status=status, isolation="server", **measured)

    table = pd.DataFrame(
        [trial(3, 30), trial(1, 10), trial(2, 13.75), trial(4, 34.5, "oom"), trial(5, 200), trial(6, 204)]
    )
    costs = trial_costs(table)
    # 1 to 2 takes 3.75 s, 2 to 3 takes 16.25 s, 3 to 4 takes 4.5 s; 4 is not ok, 5 starts 166 s later, 6 is the last.
    assert costs["trial"].tolist() == [1, 2, 3, 5]
    assert costs["cost_s"].tolist() == pytest.approx([0.25, 12.75, 1.0, 0.5])


def test_a_childs_time_and_memory_count(tmp_path: Path) -> None:
    """The child computes for 0.3 s and holds 150 MB; its parent only waits."""
    script = tmp_path / "script.py"
    script.write_text(CODE)
    used = run_measured([sys.executable, str(script)], tmp_path, os.environ)
    assert used["cpu_s"] >= 0.3
    assert 150e6 < used["peak_bytes"] < 3e9  # this process counts as well, when it starts them
    with pytest.raises(UserError, match="ended with status 3: why"):
        run_measured([sys.executable, "-c", "print('why'); raise SystemExit(3)"], tmp_path, os.environ)

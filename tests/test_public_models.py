"""Models of published kinds (`public_models.py`), each measured in one trial like a user's model."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.tables.frames import first_row
from workflow_copy import ROOT, TINY

BATCH_SIZE = 8


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def recurrent(gates: int, inputs: int, width: int) -> int:
    return gates * (inputs * width + width * width + 2 * width)


PARAMETERS = {
    "graph": linear(16, 16) + linear(16, 7),
    "detector": linear(3 * 9, 16) + linear(16 * 9, 16) + linear(16, 4) + linear(16, 3),
    "policy": linear(4, 16) + linear(16, 2),
    "quantised": linear(32, 16) + linear(16, 10),
    "variable_lengths": 100 * 16 + recurrent(4, 16, 16) + linear(16, 2),
}
"""Trainable parameters at size 16, worked out by hand."""

NOT_CHECKED = {
    "its step is the user's own function": {"policy"},
    "the same step fails on the CPU in double precision": {"quantised"},
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("public")
    shutil.copy2(ROOT / "tests" / "public_models.py", folder)
    return {name: measured(name, folder) for name in PARAMETERS}


def measured(name: str, folder: Path) -> dict[str, Any]:
    mode = "infer" if name == "quantised" else "train"
    model = {"origin": "public_models.py", "name": name, "mode": mode}
    job = {"cell": {"model": model, "size": 16, "batch_size": BATCH_SIZE}, "effort": TINY}
    command = [sys.executable, str(ROOT / "scripts" / "measure_cell.py"), json.dumps(job), "--device=cpu"]
    done = subprocess.run(
        [*command, f"--output={name}.parquet"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return first_row(pd.read_parquet(folder / f"{name}.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_public_model_is_measured_unchanged(rows: dict[str, dict[str, Any]], name: str) -> None:
    row = rows[name]
    assert (row["status"], row["parameters"], row["samples_per_step"]) == ("ok", PARAMETERS[name], BATCH_SIZE), row[
        "reason"
    ]
    reason = next((reason for reason, names in NOT_CHECKED.items() if name in names), None)
    assert row["check"] == ("not_checked" if reason else "passed"), row["reason"]
    assert (reason or "") in (row["reason"] or "")
    assert row["step_time_s"] > 0
    assert row["peak_rss_bytes"] >= row["base_rss_bytes"] > 0

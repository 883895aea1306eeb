"""The training script, run from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.studies import Cell
from trials import ROOT, job_options, run_script, write_points

SCRIPT = ROOT / "scripts" / "train_model.py"
CELL = Cell("quality", "disc_mlp", "resident", 100, "fp32", "eager", 3, "cpu")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_points(tmp_path_factory.mktemp("data") / "points.safetensors")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"device": "xpu"}, "error: --device: 'xpu' cannot be used here by torch"),
        (
            {"workload": "matmul", "size": 64, "batch_size": 1},
            "error: cell.workload: 'matmul' does not train on resident data with labels; allowed: ",
        ),
        ({"protocol": "from_host"}, "error: cell.protocol: 'from_host' changes no model; allowed: resident"),
    ],
)
def test_a_users_mistake_is_one_line(dataset: Path, tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    options = job_options(replace(CELL, **changes), epochs=1, test_share=0.5, cpu_threads=1, time_limit_s=60)
    done = run_script([*options, f"--dataset={dataset}", f"--output={tmp_path / 'row.parquet'}"], script=SCRIPT)
    assert done.returncode != 0
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "row.parquet").exists()

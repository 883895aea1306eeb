"""Short trials on a small dataset, shared by several tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import save_file

from crossover.config.studies import Cell, Effort
from crossover.measurement.process.jobs import TrialJob
from crossover.tables.columns import COLUMNS

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "measure_cell.py"
CELL = Cell("disc_depth", "disc_mlp", "resident", 100, "fp32", "eager", 3, "cpu")
EFFORT = Effort(
    warmup_min_steps=5,
    warmup_min_s=0,
    warmup_max_s=1,
    warmup_tolerance=10,
    block_min_s=0.001,
    blocks_min=3,
    timed_min_s=0,
    timed_max_s=10,
    timed_tolerance=10,
)


def write_points(path: Path, rows: int = 1000) -> Path:
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, 2)).astype(np.float32)
    save_file({"features": features, "labels": random.integers(0, 2, rows)}, path)
    return path


def trial_job(dataset: Path | str, output: Path, **values: Any) -> TrialJob:
    """A short trial in a fresh process."""
    plain: dict[str, Any] = {
        "cell": CELL,
        "trial": 1,
        "seed": 0,
        "dataset": str(dataset),
        "output": str(output),
        "threads": 1,
        "time_limit_s": 60.0,
        "isolation": "process",
        "effort": EFFORT,
        "command": "the command",
    }
    return TrialJob(**{**plain, **values})


def read_row(path: Path) -> dict[str, Any]:
    """The only row of a file, with its null columns added."""
    (row,) = pq.read_table(path).to_pylist()
    return dict.fromkeys(COLUMNS) | row


def run_script(
    options: list[str], *prefix: str, script: Path = SCRIPT, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, str(script), *options],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=timeout,
    )


def job_options(cell: Cell, **values: Any) -> list[str]:
    """The job of a measuring script and its device, as in the rules; `values` are fields of the job."""
    axes = {axis: value for axis, value in cell.values.items() if axis != "device"}
    return [json.dumps({"cell": axes, **values}), f"--device={cell.device}"]


def trial_options(cell: Cell, effort: Effort = EFFORT, **settings: Any) -> list[str]:
    """The job of scripts/measure_cell.py for a cell, and its device."""
    return job_options(cell, effort=asdict(effort), **settings)

"""Trials that a check measures in pairs, by the very command of a run; kept pair by pair, so that a check can go on."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.errors import UserError
from crossover.reading import read_arrow
from crossover.tables.frames import read_csv, write_csv

SCRIPT = Path(__file__).parents[2] / "measure_cell.py"

Pair = Mapping[str, Any]


def measure_trial(options: Sequence[str], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Measure one trial and return its row; raises UserError where it did not end ok."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "row.parquet"
        command = [sys.executable, str(SCRIPT), *options, f"--output={path}"]
        status = subprocess.run(command, env=dict(environment)).returncode
        if status:
            raise UserError(f"{shlex.join(command)}: ended with status {status}; its reason stands above")
        (row,) = read_arrow(path, "row").to_pandas().to_dict("records")
    if row["status"] != "ok":
        raise UserError(f"{shlex.join(command)}: {row['status']}: {row['reason']}")
    return {str(name): value for name, value in row.items()}


def collect_pairs(
    trials: Sequence[str], pairs: int, path: Path, measure_pair: Callable[[list[str], int], Pair], **facts: int
) -> pd.DataFrame:
    """Measure so many pairs of each trial, in rounds, and write all to `path` after each pair.

    `trials` are the options of measure_cell.py, one string each. What lies in `path` counts if it is of the same trials
    and facts, and fewer pairs than asked for: the check was interrupted, or more are wanted. Otherwise it begins anew.
    """
    plan: list[dict[str, int | str]] = [{"options": trial, **facts} for _ in range(pairs) for trial in trials]
    samples = _kept(path, plan)
    for number in range(len(samples), len(plan)):
        options = shlex.split(str(plan[number]["options"]))
        row = plan[number] | dict(measure_pair(options, number // len(trials)))
        samples = pd.concat([samples, pd.DataFrame([row])], ignore_index=True)
        write_csv(samples, path)
    return samples


def _kept(path: Path, plan: Sequence[Mapping[str, int | str]]) -> pd.DataFrame:
    """The pairs that lie there, if they are the beginning of the plan."""
    found = read_csv(path) if path.exists() else pd.DataFrame()
    there = found.reindex(columns=list(plan[0])).to_dict("records")
    return found if len(there) < len(plan) and there == list(plan[: len(there)]) else pd.DataFrame()

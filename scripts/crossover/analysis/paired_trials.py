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

from crossover.analysis.tables import read_table, write_csv
from crossover.errors import UserError

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
        (row,) = read_table(path).to_dict("records")
    if row["status"] != "ok":
        raise UserError(f"{shlex.join(command)}: {row['status']}: {row['reason']}")
    return {str(name): value for name, value in row.items()}


def collect_pairs(
    trials: Sequence[str], pairs: int, path: Path, measure_pair: Callable[[list[str], int], Pair], **facts: int
) -> pd.DataFrame:
    """Measure so many pairs of each trial, in rounds, and write them to `path` after each round.

    `trials` are the options of measure_cell.py, one string each. What lies in `path` counts if it is of the same trials
    and facts, and fewer pairs than asked for: the check was interrupted, or more are wanted. Otherwise it begins anew.
    """
    samples = _kept(path, trials, pairs, facts)
    for pair in range(len(samples) // len(trials), pairs):
        rows = [{"options": trial, **facts, **measure_pair(shlex.split(trial), pair)} for trial in trials]
        samples = pd.concat([samples, pd.DataFrame(rows)], ignore_index=True)
        write_csv(samples, path)
    return samples


def _kept(path: Path, trials: Sequence[str], pairs: int, facts: Mapping[str, int]) -> pd.DataFrame:
    """The pairs that lie there and still count."""
    if not path.exists():
        return pd.DataFrame()
    found = pd.read_csv(path)
    same = {"options", *facts} <= set(found) and set(found["options"]) == set(trials)
    same = same and all((found[name] == value).all() for name, value in facts.items())
    return found if same and len(found) < pairs * len(trials) else pd.DataFrame()

"""Measure pairs of trials, one with each of two methods, and compare the methods in tables.

The pairs are kept in a file, so that an interrupted check can be continued.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save_file
from scipy import stats

from crossover.compare.intervals import CONFIDENCE, compared, paired_ratio
from crossover.config.configuration import read_configuration
from crossover.config.options import device, new_parser
from crossover.config.studies import Cell
from crossover.config.workloads import workload_traits
from crossover.datasets import MAKERS
from crossover.errors import UserError
from crossover.files import atomic_path
from crossover.reading import read_arrow
from crossover.tables.frames import read_csv, write_csv
from trials import job_options

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_cell.py"

MARGIN = 0.04
"""Default equivalence margin: a ratio between 1 / 1.04 and 1.04."""


def check_cell(workload: str, batch_size: int, size: int, device: str) -> Cell:
    return Cell("check", workload, "resident", batch_size, "fp32", "eager", size, device)


def dataset_file(workload: str, folder: Path) -> Path | None:
    """The file in `folder` with a workload's dataset, made if missing; None if the workload reads none."""
    name = workload_traits(workload).dataset
    if name is None:
        return None
    path = folder / f"{name}.safetensors"
    if not path.exists():
        options = read_configuration([("the defaults", {})], SCRIPT.parents[1] / "config").datasets[name]
        with atomic_path(path) as temporary:
            save_file(MAKERS[name](options), temporary, metadata={"dataset": name})
    return path


def trial_commands(cells: Sequence[Cell], folder: Path, **values: Any) -> list[str]:
    """The words for measure_cell.py of each cell, one string each; `values` are of its job. Makes missing datasets."""
    datasets = [dataset_file(cell.workload, folder) for cell in cells]
    return [
        shlex.join([*job_options(cell, **values), *([f"--dataset={path}"] if path else [])])
        for cell, path in zip(cells, datasets, strict=True)
    ]


def measure_trial(options: Sequence[str]) -> dict[str, Any]:
    """Measure one trial with the command of a run, and return its row; raises UserError unless its status is `ok`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "row.parquet"
        command = [sys.executable, str(SCRIPT), *options, f"--output={path}"]
        status = subprocess.run(command).returncode
        if status:
            raise UserError(f"{shlex.join(command)}: ended with status {status}; its output above says why")
        (row,) = read_arrow(path, "row").to_pandas().to_dict("records")
    if row["status"] != "ok":
        raise UserError(f"{shlex.join(command)}: {row['status']}: {row['reason']}")
    return {str(name): value for name, value in row.items()}


def pair_options(description: str | None, cells: Mapping[str, object], default: Sequence[str]) -> ArgumentParser:
    """The options of a check that measures pairs of trials: devices, cells, and limits."""
    parser = new_parser(description)
    parser.add_argument("--devices", nargs="+", default=["cpu"], type=device, help="devices to measure on")
    parser.add_argument("--cells", nargs="+", default=default, choices=cells, help="cells to measure on each device")
    parser.add_argument("--pairs", default=40, type=int, help="maximum number of pairs of each cell")
    parser.add_argument("--minutes", default=8, type=int, help="start no pair after this many minutes")
    return parser


def collect_pairs(
    trials: Sequence[str],
    pairs: int,
    path: Path,
    measure_pair: Callable[[list[str], int], Mapping[str, Any]],
    has_time: Callable[[], bool] = lambda: True,
) -> pd.DataFrame:
    """Measure `pairs` pairs of each trial in rounds, while `has_time`, and write all to `path` after each pair.

    `trials` are strings that `measure_pair` gets as words. If `path` has fewer pairs of the same trials, they are kept;
    otherwise the check starts over.
    """
    plan = [*trials] * pairs
    samples = _kept(path, plan)
    for number in range(len(samples), len(plan)):
        if not has_time():
            break
        row = {"options": plan[number], **measure_pair(shlex.split(plan[number]), number // len(trials))}
        samples = pd.concat([samples, pd.DataFrame([row])], ignore_index=True)
        write_csv(samples, path)
    return samples


def _kept(path: Path, trials: Sequence[str]) -> pd.DataFrame:
    """The pairs in a file, if they are the first of these trials; otherwise an empty table."""
    if path.exists():
        samples = read_csv(path)
        measured = samples["options"].tolist()
        if len(measured) < len(trials) and measured == [*trials[: len(measured)]]:
            return samples
    return pd.DataFrame()


def pair_table(
    samples: pd.DataFrame, by: Sequence[str], first: str, second: str, margin: float = MARGIN
) -> pd.DataFrame:
    """One row per group: medians of both columns in s, and the ratio second/first with its 95 % interval."""
    rows = []
    for key, group in samples.groupby(list(by), sort=False):
        ratio = paired_ratio(group[second].tolist(), group[first].tolist()).exp_interval()
        rows.append(
            dict(zip(by, key, strict=True))
            | {"pairs": len(group), first: group[first].median(), second: group[second].median()}
            | {"ratio": ratio.mean, "low": ratio.low, "high": ratio.high}
            | {"verdict": compared(ratio.inverted(), margin)}
        )
    return pd.DataFrame(rows)


def spread_table(samples: pd.DataFrame, by: Sequence[str], first: str, second: str) -> pd.DataFrame:
    """One row per group of at least three pairs: standard deviations of both logarithms, and their ratio second/first.

    The 95 % interval of the ratio is that of the F test of two normal variances; `levene_p` is the p value of the test
    by Brown and Forsythe ("Robust tests for the equality of variances", 1974), which needs no normal distribution.
    Variation common to both sides of a pair, such as a drift of the machine, makes the interval wider than necessary.
    """
    rows = []
    for key, group in samples.groupby(list(by), sort=False):
        if len(group) < 3:
            continue
        logs = [np.log(group[name].to_numpy(float)) for name in (first, second)]
        spreads = [float(np.std(side, ddof=1)) for side in logs]
        freedom = len(group) - 1
        ratio = spreads[1] / spreads[0] if spreads[0] else math.nan
        low, high = stats.f.interval(CONFIDENCE, freedom, freedom)
        rows.append(
            dict(zip(by, key, strict=True))
            | {"pairs": len(group), f"{first}_sd_ln": spreads[0], f"{second}_sd_ln": spreads[1]}
            | {"sd_ratio": ratio, "sd_ratio_low": ratio / math.sqrt(high), "sd_ratio_high": ratio / math.sqrt(low)}
            | {"levene_p": float(stats.levene(*logs, center="median").pvalue)}
        )
    return pd.DataFrame(rows, columns=[*by, "pairs", f"{first}_sd_ln", f"{second}_sd_ln", *SPREAD_COLUMNS])


def write_comparison(
    samples: pd.DataFrame, by: Sequence[str], first: str, second: str, output: Path, margin: float = MARGIN
) -> None:
    spreads = spread_table(samples, by, first, second)
    table = spreads.merge(pair_table(samples, by, first, second, margin), on=[*by, "pairs"])
    write_csv(table, output)
    print(table.to_string(index=False, float_format="%.4g"))


SPREAD_COLUMNS = ("sd_ratio", "sd_ratio_low", "sd_ratio_high", "levene_p")

"""Crossovers of every line of every study: each accelerator against the CPU, read over the study's x axis."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from crossover.analysis.crossover import estimate_crossover
from crossover.analysis.interpolation import Interpolation
from crossover.analysis.tables import LINE_AXES, with_ok_times
from crossover.records import BASELINE

CROSSOVER_COLUMNS = {
    "baseline": "device that is compared with",
    "contender": "device that is compared; empty where the machine has none",
    "x_axis": "what the crossover is read over: size or parameters",
    "status": "how the search ended",
    "message": "the same in words",
    "crossover": "the crossover on the x axis; empty unless one is found",
    "crossover_low": "lower end of its 95 % set; empty: no interval is given",
    "crossover_high": "upper end of its 95 % set; empty: no interval is given",
    "bracket_low": "largest measured point on the x axis before the sign changes",
    "bracket_high": "smallest measured point after it",
    "bracket_low_size": "the same as a size",
    "bracket_high_size": "the same as a size",
    "crossover_size": "the crossover as a size, interpolated",
    "crossover_parameters": "the crossover in trainable parameters, interpolated",
    "roots": "all crossings found, on the x axis",
    "trials": "fewest ok trials behind a point; with one, the crossover is indicative",
    "size_name": "what the size axis counts",
    "baseline_name": "name of the baseline's device",
    "contender_name": "name of the contender's device",
}
"""The columns of a crossover beside the axes of its line."""


def compare_lines(measurements: pd.DataFrame, x_axes: Mapping[str, str]) -> pd.DataFrame:
    """One row for each line and accelerator; `x_axes` maps a study to what its crossover is read over."""
    rows = []
    for key, line in with_ok_times(measurements).groupby(LINE_AXES, sort=False):
        contenders = [device for device in line["device"].unique() if device != BASELINE]
        for contender in contenders or [None]:
            axes = dict(zip(LINE_AXES, key, strict=True))
            rows.append(axes | _compare(line, contender, x_axes[str(axes["study"])]))
    return pd.DataFrame(rows, columns=[*LINE_AXES, *CROSSOVER_COLUMNS]).convert_dtypes()


def _compare(line: pd.DataFrame, contender: str | None, x_axis: str) -> dict[str, object]:
    table = line.rename(columns={"device": "side"})[["side", "trial", "step_time_s"]].assign(size=line[x_axis])
    found = estimate_crossover(table, BASELINE, contender or "accelerator")
    pair = line[line["device"].isin([BASELINE, contender])]
    to_size = Interpolation(line[x_axis], line["size"])
    to_parameters = Interpolation(line[x_axis], line["parameters"])
    low, high = found.bracket or (None, None)
    return {
        "baseline": BASELINE,
        "contender": contender,
        "x_axis": x_axis,
        "status": found.status,
        "message": found.message,
        "crossover": found.size,
        "crossover_low": found.low,
        "crossover_high": found.high,
        "bracket_low": low,
        "bracket_high": high,
        "bracket_low_size": to_size(low),
        "bracket_high_size": to_size(high),
        "crossover_size": to_size(found.size),
        "crossover_parameters": to_parameters(found.size),
        "roots": list(found.roots),
        "trials": _fewest_trials(pair),
        "size_name": line["size_name"].iloc[0],
        "baseline_name": _device_name(line, BASELINE),
        "contender_name": _device_name(line, contender),
    }


def _fewest_trials(pair: pd.DataFrame) -> int:
    counts = pair[pair["status"] == "ok"].groupby(["size", "device"]).size()
    return int(counts.min()) if len(counts) else 0


def _device_name(line: pd.DataFrame, device: str | None) -> str | None:
    names = line.loc[line["device"] == device, "device_name"].dropna()
    return str(names.iloc[0]) if len(names) else None

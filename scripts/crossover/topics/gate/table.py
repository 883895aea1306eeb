"""Compare two runs cell by cell: the ratio of times with its interval, a verdict, and differences in code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crossover.compare.cells import rows_of_cells
from crossover.compare.intervals import COMPARISONS, SampleMean, compared, ratio_of
from crossover.tables.registry import CELL_AXES

NO_DATA, MISSING = "no_data", "missing"
"""Verdicts on a cell for which a run has no time, and on a cell that a run lacks."""
VERDICTS = (*COMPARISONS, NO_DATA, MISSING)

MARGIN = 0.02
"""Equivalence margin: a ratio between 1 / 1.02 and 1.02."""

CODE = {"model": "model_key", "measurement": "measurement_key", "packages": "packages"}
"""The parts of a cell's code, with the columns of measurements that identify their versions."""
OTHER = "other"
"""Everything else in code_key, such as the environment variables that a user's model reads."""
CODE_COLUMNS = ("model", *CODE.values(), "code_key")

COMPARISON_COLUMNS = (
    *("verdict", "ratio", "ratio_low", "ratio_high", "within", "trials_first", "trials_second"),
    *("status_first", "status_second", "missing_in", "differing_code", "unrecorded_code", "differing_packages"),
)
"""The columns of a comparison other than the axes of its cell."""

SUMMARY = {
    "cells": "cells with a time in both runs",
    "geometric_mean": "geometric mean of the ratios of these cells",
    "minimum": "smallest ratio",
    "lower_quartile": "a quarter of the ratios are smaller",
    "median": "half of the ratios are smaller",
    "upper_quartile": "a quarter of the ratios are larger",
    "maximum": "largest ratio",
    "intervals": "ratios with a 95 % interval, which needs several trials in both runs",
    "share_within": "share of these intervals that contain 1; about 0.95 if nothing changed",
}
"""The rows of `summary`."""

TrialColumns = Mapping[str, NDArray[Any]]
"""The columns of a cell's trials."""


def compare_runs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row per cell of either run, in the order of the first run. Cells that only the second run has come last.

    `verdict` is one of VERDICTS, on the second run. `ratio` is the time of the first run over the time of the second,
    and `within` is True if the interval of the ratio contains 1. The columns of trials count ok trials; those of
    statuses name each status once. `differing_code` and `unrecorded_code` list parts of CODE; `differing_code` is OTHER
    if only code_key differs.

    To compare cells that differ in an axis, such as the same cells in two studies, give the axis the same value in both
    runs: `compare_runs(first, second.assign(study="name in the first"))`.
    """
    firsts, seconds = (cells_of(run) for run in (first, second))
    rows = [
        dict(zip(CELL_AXES, key, strict=True)) | _compare_cell(firsts.get(key), seconds.get(key))
        for key in dict.fromkeys([*firsts, *seconds])
    ]
    types = {"ratio": "Float64", "ratio_low": "Float64", "ratio_high": "Float64", "within": "boolean"}
    return pd.DataFrame(rows, columns=[*CELL_AXES, *COMPARISON_COLUMNS]).convert_dtypes().astype(types)


def cells_of(run: pd.DataFrame) -> dict[tuple[object, ...], TrialColumns]:
    """The columns of each cell's trials that a comparison needs, by the cell's axes."""
    # Arrays are much faster than a pandas table per cell.
    names = [name for name in (*CELL_AXES, "status", "step_time_s", *CODE_COLUMNS) if name in run]
    columns = {name: run[name].to_numpy(object) for name in names}
    return {
        tuple(columns[axis][rows[0]] for axis in CELL_AXES): {name: values[rows] for name, values in columns.items()}
        for rows in rows_of_cells(run)
    }


def _compare_cell(first: TrialColumns | None, second: TrialColumns | None) -> dict[str, object]:
    first_s, second_s = times_s(first), times_s(second)
    row: dict[str, object] = {
        "verdict": NO_DATA,
        "trials_first": len(first_s),
        "trials_second": len(second_s),
        "status_first": _statuses(first),
        "status_second": _statuses(second),
    }
    if first is None or second is None:
        return row | {"verdict": MISSING, "missing_in": "first" if first is None else "second"}
    row |= _compare_code(first, second)
    if first_s and second_s:
        ratio = ratio_of(SampleMean.of_times(second_s), SampleMean.of_times(first_s))
        row["verdict"] = compared(ratio, MARGIN)
        row |= {"ratio": ratio.mean, "ratio_low": ratio.low, "ratio_high": ratio.high}
        if ratio.low is not None and ratio.high is not None:
            row["within"] = ratio.low <= 1 <= ratio.high
    return row


def _compare_code(first: TrialColumns, second: TrialColumns) -> dict[str, object]:
    keys, packages = ([_values(run, column) for run in (first, second)] for column in ("code_key", "packages"))
    models = [{model.rpartition("/")[2] for model in _values(run, "model")} for run in (first, second)]
    parts = {part: [_values(run, column) for run in (first, second)] for part, column in CODE.items()}
    unrecorded = [part for part, values in parts.items() if not all(values)]
    differing = [part for part, (before, after) in parts.items() if part not in unrecorded and before != after]
    if "model" in unrecorded and models[0] != models[1]:
        differing.insert(0, "model")
    if all(keys) and keys[0] == keys[1] and not differing:
        return {}
    if all(keys) and not differing:
        differing = [OTHER]
    return {
        "differing_code": " ".join(differing) or None,
        "unrecorded_code": " ".join(unrecorded) or None,
        "differing_packages": _differing_packages(*packages) if "packages" in differing else None,
    }


def _differing_packages(*runs: set[str]) -> str:
    """As in 'torch 2.12.0 against 2.13.0', from the JSON texts of both runs."""
    versions: list[dict[str, set[str]]] = [{}, {}]
    for texts, of_run in zip(runs, versions, strict=True):
        for name, version in (item for text in texts for item in json.loads(text).items()):
            of_run.setdefault(name, set()).add(str(version))
    return ", ".join(
        f"{name} {' against '.join(' or '.join(sorted(of_run.get(name, {'none'}))) for of_run in versions)}"
        for name in sorted({*versions[0], *versions[1]})
        if versions[0].get(name) != versions[1].get(name)
    )


def _values(cell: TrialColumns, column: str) -> set[str]:
    """The values of a cell's trials; empty if an older run lacks the column."""
    return {value for value in cell[column] if pd.notna(value)} if column in cell else set()


def times_s(cell: TrialColumns | pd.DataFrame | None) -> list[float]:
    return [] if cell is None else [float(time) for time in cell["step_time_s"][cell["status"] == "ok"]]


def _statuses(cell: TrialColumns | None) -> str | None:
    return None if cell is None else " ".join(dict.fromkeys(cell["status"]))


def summary(comparison: pd.DataFrame) -> pd.Series:
    """Quartiles and geometric mean of the ratios of a comparison, and the share of intervals that contain 1.

    Quartiles are interpolated on the log scale, so that swapping the runs inverts them.
    """
    logs = comparison["ratio"].dropna().astype(float).map(math.log)
    within = comparison["within"].dropna().astype(float)
    quartiles = {"minimum": 0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "maximum": 1}
    return pd.Series(
        {
            "cells": len(logs),
            "geometric_mean": np.exp(logs.mean()),
            **{name: np.exp(logs.quantile(share)) for name, share in quartiles.items()},
            "intervals": len(within),
            "share_within": within.mean(),
        },
        dtype=float,
    )

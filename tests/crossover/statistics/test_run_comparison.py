from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.config.words import AXES
from crossover.statistics.run_comparison import COMPARISON_COLUMNS, MISSING, NO_DATA, compare_runs, summary

Row = Callable[..., dict[str, Any]]


def run(row: Row, times: dict[int, list[float]]) -> pd.DataFrame:
    """Trials of a run: their times by size."""
    trials = [(size, trial, time) for size, own in times.items() for trial, time in enumerate(own, start=1)]
    return pd.DataFrame([row(size=size, trial=trial, step_time_s=time) for size, trial, time in trials])


def test_runs_are_compared_cell_by_cell(row: Row) -> None:
    first = run(row, {3: [1.0, 1.001], 2: [1.0, 1.001]})
    second = run(row, {2: [1.0, 1.001, 0.999], 3: [2.0, 2.001]})
    comparison = compare_runs(first, second)
    assert list(comparison.columns) == [*AXES, *COMPARISON_COLUMNS]
    assert comparison["size"].tolist() == [3, 2]
    assert comparison["verdict"].tolist() == ["slower", "equivalent"]
    assert comparison["ratio"].tolist() == pytest.approx([0.5, 1], rel=1e-3)
    assert comparison["within"].tolist() == [False, True]
    assert comparison["trials_first"].tolist() == [2, 2]
    assert comparison["trials_second"].tolist() == [2, 3]
    assert comparison["missing_in"].isna().all()


@pytest.mark.parametrize("axis", ["study", "machine"])
def test_cells_that_differ_in_any_axis_are_not_compared(row: Row, axis: str) -> None:
    first = run(row, {2: [1.0, 1.0]})
    comparison = compare_runs(first, first.assign(**{axis: "x"}))
    assert comparison["verdict"].tolist() == [MISSING, MISSING]
    assert comparison["missing_in"].tolist() == ["second", "first"]
    assert comparison["ratio"].isna().all()


def test_only_ok_trials_have_a_time(row: Row) -> None:
    first = run(row, {2: [1.0, 1.0]})
    failed = pd.DataFrame([row(size=2, trial=3, status="oom", step_time_s=None)])
    (partly,) = compare_runs(first, pd.concat([first, failed])).to_dict("records")
    assert (partly["trials_second"], partly["status_second"], partly["verdict"]) == (2, "ok oom", "equivalent")
    (never,) = compare_runs(first, failed).to_dict("records")
    assert (never["trials_second"], never["status_second"], never["verdict"]) == (0, "oom", NO_DATA)
    assert pd.isna(never["ratio"])


def test_the_summary_by_hand(row: Row) -> None:
    """Ratios 1/4, 1/2, 1, 2, 16: their logs to base 2 are -2, -1, 0, 1, 4, with the mean 0.4; only 1 holds 1."""
    ratios = dict(enumerate([1.0, 0.25, 16.0, 0.5, 2.0], start=1))
    first = run(row, {**{size: [1.0, 1.0] for size in ratios}, 8: [1.0, 1.0]})
    second = run(row, {size: [1 / ratio, 1 / ratio] for size, ratio in ratios.items()})
    assert summary(compare_runs(first, second)).to_dict() == pytest.approx(
        {
            "cells": 5,
            "geometric_mean": 2**0.4,
            "minimum": 0.25,
            "lower_quartile": 0.5,
            "median": 1,
            "upper_quartile": 2,
            "maximum": 16,
            "intervals": 5,
            "share_within": 0.2,
        }
    )
    nothing = summary(compare_runs(run(row, {2: [1.0]}), run(row, {3: [1.0]})))
    assert nothing.dropna().to_dict() == {"cells": 0, "intervals": 0}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, None),
        ({"model_key": "b", "code_key": "b"}, "model"),
        ({"model": "torchvision:resnet34"}, "model"),
        ({"code_key": "b"}, "measurement"),
        ({"model_key": None}, "model"),  # as a run of an older version
    ],
)
def test_code_that_differs_is_named(row: Row, changed: dict[str, Any], code: str | None) -> None:
    first = run(row, {2: [1.0, 1.0]}).assign(model="torchvision:resnet18", model_key="a", code_key="a")
    comparison = compare_runs(first, first.assign(**changed))
    assert comparison["differing_code"].dropna().tolist() == ([code] if code else [])

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.config.words import AXES
from crossover.topics.gate.table import COMPARISON_COLUMNS, NO_DATA, compare_runs, summary

Row = Callable[..., dict[str, Any]]


def run(row: Row, times: dict[int, list[float]]) -> pd.DataFrame:
    trials = [(size, trial, time) for size, times_s in times.items() for trial, time in enumerate(times_s, start=1)]
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


def test_only_ok_trials_have_a_time(row: Row) -> None:
    first = run(row, {2: [1.0, 1.0]})
    failed = pd.DataFrame([row(size=2, trial=3, status="oom", step_time_s=None)])
    (partly,) = compare_runs(first, pd.concat([first, failed])).to_dict("records")
    assert (partly["trials_second"], partly["status_second"], partly["verdict"]) == (2, "ok oom", "equivalent")
    (never,) = compare_runs(first, failed).to_dict("records")
    assert (never["trials_second"], never["status_second"], never["verdict"]) == (0, "oom", NO_DATA)
    assert pd.isna(never["ratio"])


def test_the_summary_by_hand(row: Row) -> None:
    """The base-2 logs of the ratios are -2, -1, 0, 1, 4, with the mean 0.4; only one interval contains 1."""
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
    ("changed", "differing", "unrecorded"),
    [
        ({}, None, None),
        ({"model_key": "b", "code_key": "b"}, "model", None),
        ({"model": "new/net.py:build"}, None, None),  # the same code in another folder
        ({"model": "new/net.py:build", "model_key": None}, None, None),
        ({"model": "old/net.py:wider", "model_key": None}, "model", "model"),
        ({"measurement_key": "b", "code_key": "b"}, "measurement", None),
        ({"packages": '{"torch": "2.13.0", "numpy": "2"}', "code_key": "b"}, "packages", None),
        ({"code_key": "b"}, "other", None),
        ({"measurement_key": None}, None, None),  # code_key covers it
        ({"measurement_key": None, "code_key": "b"}, "other", "measurement"),  # as for a run of an older version
        (dict.fromkeys(["model_key", "measurement_key", "packages", "code_key"]), None, "model measurement packages"),
    ],
)
def test_differing_code_is_distinct_from_unrecorded_code(
    row: Row, changed: dict[str, Any], differing: str | None, unrecorded: str | None
) -> None:
    first = run(row, {2: [1.0, 1.0]}).assign(model="old/net.py:build", model_key="a", measurement_key="a")
    first = first.assign(code_key="a", packages='{"torch": "2.12.0", "numpy": "2"}')
    (cell,) = compare_runs(first, first.assign(**changed)).astype(object).to_dict("records")
    assert cell["differing_code"] == differing or (differing is None and pd.isna(cell["differing_code"]))
    assert cell["unrecorded_code"] == unrecorded or (unrecorded is None and pd.isna(cell["unrecorded_code"]))
    if differing == "packages":
        assert cell["differing_packages"] == "torch 2.12.0 against 2.13.0"

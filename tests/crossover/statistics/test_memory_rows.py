"""What a cell's memory is for, chosen from its trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS, memory_rows

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]

SPLIT = dict(zip(PARTS, (10, 20, 0, 30, 5, 35), strict=True))
"""In all 100 bytes."""


def test_the_parts_are_those_of_the_trial_in_the_middle(row: Row, view_of: Views) -> None:
    peaks = {1: 300, 2: 100, 3: 200}
    rows = [
        row(device="cuda", trial=trial, peak_allocated_bytes=peak, **{**SPLIT, "other_bytes": peak - 65})
        for trial, peak in peaks.items()
    ]
    (cell,) = memory_rows(view_of(rows)).to_dict("records")
    assert (cell["peak_bytes"], cell["other_bytes"], cell["parameter_bytes"]) == (200, 135, 10)


def test_of_two_trials_the_smaller_peak_counts_as_in_the_table_of_cells(row: Row, view_of: Views) -> None:
    rows = [row(device="cuda", trial=trial, peak_allocated_bytes=peak) for trial, peak in ((1, 20), (2, 10))]
    view = view_of(rows)
    assert memory_rows(view)["peak_bytes"].tolist() == view.cells["peak_allocated_bytes"].tolist() == [10]


def test_on_the_cpu_the_peak_is_the_sum_of_the_parts_or_else_the_growth(row: Row, view_of: Views) -> None:
    resident = {"base_rss_bytes": 1000, "peak_rss_bytes": 1070, "memory_bytes": 4000}
    rows = [row(size=2, **resident, **SPLIT), row(size=4, **resident)]
    found = memory_rows(view_of(rows))
    assert found["peak_bytes"].tolist() == [100, 70]
    assert found["capacity_bytes"].tolist() == [4000, 4000]


def test_a_cell_that_ran_out_of_memory_has_a_capacity_and_no_peak(row: Row, view_of: Views) -> None:
    rows = [
        row(size=2, device="cuda", peak_allocated_bytes=50, device_memory_bytes=80),
        row(size=4, device="cuda", status="oom", step_time_s=None, device_memory_bytes=80, peak_allocated_bytes=79),
    ]
    found = memory_rows(view_of(rows))
    assert found["capacity_bytes"].tolist() == [80, 80]
    assert found["peak_bytes"].tolist()[0] == 50
    assert pd.isna(found["peak_bytes"].tolist()[1])


def test_over_parameters_x_counts_these(row: Row, view_of: Views) -> None:
    found = memory_rows(view_of([row(parameters=230)], x_axis="parameters"))
    assert found["x"].tolist() == [pytest.approx(230)]

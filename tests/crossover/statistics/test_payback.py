from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.statistics.payback import Jobs, payback, startups_of
from crossover.statistics.ratios import ratios_of
from crossover.tables.frames import records

Row = Callable[..., dict[str, Any]]

GPU = Jobs([2.4, 2.6, 2.5], [1.0e-3, 1.02e-3, 0.98e-3])
CPU = Jobs([0.5, 0.45, 0.52], [2.0e-3, 2.1e-3, 1.95e-3])


def phases(context: float, build: float) -> str:
    return json.dumps({"import": 1.0, "context": context, "build": build, "first steps": 0.7})


def test_startup_is_context_build_and_the_excess_of_the_first_step(row: Row) -> None:
    """0.5 + 1.5 + (0.3 - 0.1) s; NaN if a phase or the first step is unknown."""
    whole = row(spent_s=phases(0.5, 1.5), first_step_s=0.3, step_time_s=0.1)
    rows = pd.DataFrame([whole, whole | {"first_step_s": None}, whole | {"spent_s": '{"import": 1}'}, row()])
    assert startups_of(rows).tolist() == pytest.approx([2.2, *[math.nan] * 3], nan_ok=True)
    assert np.isnan(startups_of(rows.drop(columns="spent_s"))).all()


def welch(gpu: Jobs, cpu: Jobs, steps: float) -> Any:
    """scipy's Welch test of the total times of jobs with this number of steps."""
    totals_s = (np.array(jobs.startups_s) + steps * np.array(jobs.steps_s) for jobs in (gpu, cpu))
    return stats.ttest_ind(*totals_s, equal_var=False)


def test_total_times_differ_just_significantly_at_the_ends_of_the_interval() -> None:
    interval = payback(GPU, CPU)
    assert interval is not None
    assert interval.mean == pytest.approx((2.5 - 0.49) / (2.016666667e-3 - 1e-3))
    quantile = stats.t.ppf(0.975, welch(GPU, CPU, interval.mean).df)
    statistics = [welch(GPU, CPU, end).statistic for end in (interval.low, interval.mean, interval.high)]
    assert statistics == pytest.approx([quantile, 0, -quantile], abs=1e-9)


def test_there_is_no_payback_without_a_significant_difference_per_step() -> None:
    assert payback(Jobs([2.5, 2.6], [1e-3, 1.5e-3]), Jobs([0.5, 0.6], [1.4e-3, 2e-3])) is None


def test_the_interval_is_open_if_the_gain_of_whole_jobs_is_not_significant() -> None:
    """The gain per step is significant with its four degrees of freedom, but not with the fewer of whole jobs."""
    steps_s, cpu = [1.0e-3, 1.1e-3, 0.9e-3], Jobs([0.1] * 3, [1.24e-3, 1.34e-3, 1.14e-3])
    late = Jobs([6.0, 4.0, 2.0], steps_s)
    interval, alike = payback(late, cpu), payback(Jobs([3.2, 2.0, 0.8], steps_s), cpu)
    assert interval is not None
    assert alike is not None
    quantile = stats.t.ppf(0.975, welch(late, cpu, interval.mean).df)
    assert welch(late, cpu, interval.low or 0).statistic == pytest.approx(quantile)
    assert interval.high is None
    assert (alike.low, alike.high) == (0, None)


@pytest.mark.parametrize(
    ("pair", "contender", "baseline"),
    [
        ("device", {"device": "cuda"}, {"device": "cpu"}),
        ("settings", {"execution": "compile"}, {"execution": "eager"}),
        ("protocol", {"protocol": "resident"}, {"protocol": "loaded"}),
    ],
)
def test_ratios_have_startups_and_payback(
    row: Row, pair: str, contender: dict[str, str], baseline: dict[str, str]
) -> None:
    """Start-ups of 3 and 1 s, steps of 1 and 2 ms: 2,000 steps."""
    rows = [
        row(**side, step_time_s=step_s, first_step_s=step_s, spent_s=phases(startup_s - 0.5, 0.5))
        for side, step_s, startup_s in ((baseline, 2e-3, 1.0), (contender, 1e-3, 3.0))
    ]
    (ratio,) = [ratio for ratio in records(ratios_of(pd.DataFrame(rows))) if ratio["pair"] == pair]
    assert (ratio["startup_s"], ratio["baseline_startup_s"]) == pytest.approx((3, 1))
    assert (ratio["payback_steps"], ratio["payback_steps_low"]) == (pytest.approx(2000), None)
    (unknown,) = records(ratios_of(pd.DataFrame(rows).drop(columns=["spent_s", "first_step_s"])))
    assert (unknown["startup_s"], unknown["payback_steps"]) == (None, None)

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.compare.cells import means_of
from crossover.compare.crossover_curve import advantages_of_table
from crossover.compare.intervals import Interval
from crossover.compare.pairings import pairings
from crossover.compare.payback import RunCosts, payback, startups_of
from crossover.compare.ratios import ratios_of
from crossover.tables.frames import records

Row = Callable[..., dict[str, Any]]

GPU = RunCosts([2.4, 2.6, 2.5], [1.0e-3, 1.02e-3, 0.98e-3])
CPU = RunCosts([0.5, 0.45, 0.52], [2.0e-3, 2.1e-3, 1.95e-3])


def phases(context: float, build: float) -> str:
    return json.dumps({"import": 1.0, "context": context, "build": build, "first steps": 0.7})


def test_startup_is_context_build_and_the_excess_of_the_first_step(row: Row) -> None:
    """0.5 + 1.5 + (0.3 - 0.1) s; NaN if a phase or the first step is unknown."""
    whole = row(spent_s=phases(0.5, 1.5), first_step_s=0.3, step_time_s=0.1)
    rows = pd.DataFrame([whole, whole | {"first_step_s": None}, whole | {"spent_s": '{"import": 1}'}, row()])
    assert startups_of(rows).tolist() == pytest.approx([2.2, *[math.nan] * 3], nan_ok=True)
    assert np.isnan(startups_of(rows.drop(columns="spent_s"))).all()


def welch(gpu: RunCosts, cpu: RunCosts, steps: float) -> Any:
    """scipy's Welch test of the total times of jobs with this number of steps."""
    totals_s = (np.array(jobs.startups_s) + steps * np.array(jobs.steps_s) for jobs in (gpu, cpu))
    return stats.ttest_ind(*totals_s, equal_var=False)


def test_the_resolution_of_a_total_time_is_that_of_the_start_up_and_of_all_steps() -> None:
    """Start-ups are rounded to 0.1 ms, and each of ten million steps of 1 ms by 1e-7 of it: 1 ms."""
    total = RunCosts([1.0] * 3, [1e-3] * 3).total(10**7)
    assert total.variance == pytest.approx((1e-4 + 1e-3) ** 2 / 6)


def test_total_times_differ_just_significantly_at_the_ends_of_the_interval() -> None:
    interval = payback(GPU, CPU, 1)
    assert interval is not None
    assert interval.mean == pytest.approx((2.5 - 0.49) / (2.016666667e-3 - 1e-3))
    quantile = stats.t.ppf(0.975, welch(GPU, CPU, interval.mean).df)
    statistics = [welch(GPU, CPU, end).statistic for end in (interval.low, interval.mean, interval.high)]
    assert statistics == pytest.approx([quantile, 0, -quantile], abs=1e-9)


def test_the_side_with_the_faster_steps_is_that_of_the_sign() -> None:
    """Without a sign there is no payback, nor with one that the mean times contradict."""
    assert payback(GPU, CPU, 0) is None
    assert payback(GPU, CPU, -1) is None
    assert payback(CPU, GPU, -1) == payback(GPU, CPU, 1)


def test_a_side_that_is_ahead_from_the_first_step_on_has_an_interval_from_0() -> None:
    """Its steps are faster, but with the few degrees of freedom of whole jobs they might not be."""
    ahead, behind = (
        RunCosts([0.5, 0.4, 0.6], [1.0e-3, 2.2e-3, 1.6e-3]),
        RunCosts([2.5, 2.6, 2.4], [2.0e-3, 3.2e-3, 2.6e-3]),
    )
    assert payback(ahead, behind, 1) == Interval(0, 0, None)


def test_the_interval_is_open_if_the_gain_of_whole_jobs_is_not_significant() -> None:
    """The gain per step is significant with its four degrees of freedom, but not with the fewer of whole jobs."""
    steps_s, cpu = [1.0e-3, 1.1e-3, 0.9e-3], RunCosts([0.1] * 3, [1.24e-3, 1.34e-3, 1.14e-3])
    late = RunCosts([6.0, 4.0, 2.0], steps_s)
    interval, alike = payback(late, cpu, 1), payback(RunCosts([3.2, 2.0, 0.8], steps_s), cpu, 1)
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
    (ratio,) = [ratio for ratio in ratios(pd.DataFrame(rows)) if ratio["pair"] == pair]
    assert (ratio["startup_s"], ratio["baseline_startup_s"]) == pytest.approx((3, 1))
    assert (ratio["payback_steps"], ratio["payback_steps_low"]) == (pytest.approx(2000), None)
    for unknown in ratios(pd.DataFrame(rows).drop(columns=["spent_s", "first_step_s"])):
        assert (unknown["startup_s"], unknown["payback_steps"]) == (None, None)


SIZES, TRIALS = (2, 3, 4, 5, 6, 7), 3


def series(row: Row, speedups: Sequence[float], spreads: Sequence[float], seed: int) -> pd.DataFrame:
    """Trials of a CPU with steps of 1 ms and of a GPU with these speed-ups, with start-ups of 0.5 and 2.5 s.

    `spreads` are the standard deviations between trials, on the log scale, by size.
    """
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            row(
                size=size,
                device=device,
                trial=trial,
                step_time_s=step_s,
                first_step_s=step_s,
                spent_s=phases(0.1, build),
            )
            for size, speedup, spread in zip(SIZES, speedups, spreads, strict=True)
            for device, time_s, build in (("cpu", 1e-3, 0.4), ("cuda", 1e-3 / speedup, 2.4))
            for trial in range(1, TRIALS + 1)
            for step_s in [time_s * math.exp(spread * generator.normal())]
        ]
    )


def ratios(trials: pd.DataFrame) -> list[dict[str, Any]]:
    return records(ratios_of(trials, means_of(trials), pairings(trials, {"disc_depth": "size"})))


def paid_back(rows: pd.DataFrame) -> dict[int, bool]:
    """Whether the GPU, not the CPU, has the payback at each size that has one."""
    return {ratio["size"]: ratio["ratio"] > 1 for ratio in ratios(rows) if ratio["payback_steps"] is not None}


def faster_sides(rows: pd.DataFrame) -> dict[int, bool]:
    """Whether the GPU, not the CPU, is faster at each size at which the crossover's signs say that one is."""
    advantages = advantages_of_table(rows.assign(side=rows["device"]), "cpu", "cuda")
    signs = zip(advantages.sizes.tolist(), advantages.sure_signs().tolist(), strict=True)
    return {int(size): sign > 0 for size, sign in signs if sign}


def test_a_payback_exists_where_the_crossover_calls_a_side_faster(row: Row) -> None:
    """Also where the spread of the size's own three trials hides a speed-up that the other sizes' spread shows."""
    for seed in range(20):
        rows = series(row, (0.3, 0.5, 0.8, 1.2, 2.0, 5.0), (0.1, 0.1, 0.1, 0.1, 0.1, 0.25), seed)
        assert paid_back(rows) == faster_sides(rows)
        assert len(paid_back(rows)) > 1


def test_there_is_hardly_ever_a_payback_between_equal_sides(row: Row) -> None:
    """At most 5 % of series have one at any of their sizes: of 50, more than 6 have one in 1 % of cases."""
    runs = [series(row, (1.0,) * 6, (0.1,) * 6, seed) for seed in range(50)]
    assert sum(bool(paid_back(rows)) for rows in runs) <= 6

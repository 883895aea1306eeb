from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.statistics.summary import speedups, summarise, time_over_trials

Row = Callable[..., dict[str, Any]]


def test_time_over_trials_by_hand() -> None:
    """Medians 1, 2, 4 s: mean log = ln 2, standard error = ln 2 / sqrt(3), t(0.975, 2) = 4.302653."""
    time = time_over_trials([1.0, 2.0, 4.0])
    spread = math.log(2) / math.sqrt(3) * 4.302653
    assert time.mean_s == pytest.approx(2)
    assert time.low_s == pytest.approx(2 * math.exp(-spread), rel=1e-6)
    assert time.high_s == pytest.approx(2 * math.exp(spread), rel=1e-6)


def test_one_trial_gives_no_interval() -> None:
    time = time_over_trials([0.5])
    assert (time.mean_s, time.low_s, time.high_s) == (pytest.approx(0.5), None, None)


def test_the_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        time = time_over_trials(list(np.exp(random.normal(0, 0.1, 3))))
        assert time.low_s is not None
        assert time.high_s is not None
        covered += time.low_s <= 1 <= time.high_s
    assert abs(covered / 2000 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_a_cell_is_a_row(row: Row) -> None:
    trials = [row(trial=number, step_time_s=time) for number, time in ((1, 1e-3), (2, 4e-3))]
    (cell,) = summarise(pd.DataFrame(trials)).to_dict("records")
    assert cell["step_time_s"] == pytest.approx(2e-3)
    assert cell["step_time_low_s"] < 2e-3 < cell["step_time_high_s"]
    assert (cell["trials"], cell["trials_not_ok"], cell["status"]) == (2, 0, "ok")
    assert (cell["parameters"], cell["device_name"]) == (230, "Brand C1")


def test_cells_are_told_apart_by_every_axis(row: Row) -> None:
    changes = [{}, {"device": "cuda"}, {"size": 5}, {"batch_size": 7}, {"precision": "tf32"}, {"study": "other"}]
    assert len(summarise(pd.DataFrame([row(**change) for change in changes]))) == len(changes)


def test_a_size_beyond_the_studys_own_was_refined(row: Row) -> None:
    table = pd.DataFrame([row(size=size) for size in (2, 3, 4)])
    assert summarise(table, {"disc_depth": (2, 4)})["refined"].tolist() == [False, True, False]


def test_a_failed_trial_shows_and_the_others_still_count(row: Row) -> None:
    trials = [
        row(trial=1, step_time_s=1e-3),
        row(trial=2, step_time_s=None, flags=None, status="oom", reason="no memory"),
    ]
    (cell,) = summarise(pd.DataFrame(trials)).to_dict("records")
    assert (cell["status"], cell["reason"], cell["trials"], cell["trials_not_ok"]) == ("oom", "no memory", 1, 1)
    assert cell["step_time_s"] == pytest.approx(1e-3)


def test_a_cell_without_any_result_has_no_time(row: Row) -> None:
    cells = summarise(pd.DataFrame([row(step_time_s=None, flags=None, status="timeout", reason="too long")]))
    assert cells["step_time_s"].isna().all()
    assert cells.loc[0, "status"] == "timeout"


def test_flags_of_all_trials_come_together_once(row: Row) -> None:
    trials = [row(trial=1, flags=["quota"]), row(trial=2, flags=["drift", "quota"], step_time_s=1.001e-3)]
    assert summarise(pd.DataFrame(trials)).loc[0, "flags"] == ["drift", "quota"]


@pytest.mark.parametrize(("slowest_s", "flags"), [(1.25, []), (1.26, ["trials_differ"])])
def test_trials_that_disagree_are_flagged(row: Row, slowest_s: float, flags: list[str]) -> None:
    trials = [row(trial=number, step_time_s=time_s) for number, time_s in enumerate((1.1, slowest_s, 1.0), start=1)]
    assert summarise(pd.DataFrame(trials)).loc[0, "flags"] == flags


def test_speedups_against_welchs_formula() -> None:
    base, contender = [2.0, 2.2, 2.1], [1.0, 1.3, 0.9]
    trials = pd.DataFrame(
        [{"x": 5.0, "device": "cpu", "step_time_s": time} for time in base]
        + [{"x": 5.0, "device": "cuda", "step_time_s": time} for time in contender]
    )
    (found,) = speedups(trials, "cpu", "cuda").to_dict("records")
    logs = np.log(base), np.log(contender)
    variances = [log.var(ddof=1) / 3 for log in logs]
    freedom = sum(variances) ** 2 / sum(variance**2 / 2 for variance in variances)
    spread = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    centre = logs[0].mean() - logs[1].mean()
    assert math.log(found["speedup"]) == pytest.approx(centre)
    assert math.log(found["low"]) == pytest.approx(centre - spread)
    assert math.log(found["high"]) == pytest.approx(centre + spread)


def test_speedups_need_both_sides_and_two_trials_for_an_interval() -> None:
    trials = pd.DataFrame(
        [
            {"x": 1.0, "device": "cpu", "step_time_s": 2.0},
            {"x": 1.0, "device": "cuda", "step_time_s": 1.0},
            {"x": 2.0, "device": "cpu", "step_time_s": 2.0},
        ]
    )
    (found,) = speedups(trials, "cpu", "cuda").to_dict("records")
    assert found["x"] == 1
    assert found["speedup"] == pytest.approx(2)
    assert math.isnan(found["low"])


def test_a_cell_carries_what_figures_compare(row: Row) -> None:
    """Batch 100 in 2 ms: 50,000 samples a second; medians are over the ok trials alone."""
    trials = [
        row(
            trial=number,
            step_time_s=2e-3,
            peak_allocated_bytes=peak,
            base_rss_bytes=5,
            peak_rss_bytes=rss,
            timed_steps=n,
        )
        for number, peak, rss, n in ((1, 10, 9, 40), (2, 30, 8, 50), (3, 20, 7, 30))
    ]
    trials.append(row(trial=4, status="oom", step_time_s=None, flags=None, peak_allocated_bytes=1000))
    (cell,) = summarise(pd.DataFrame(trials)).to_dict("records")
    assert cell["samples_per_s"] == pytest.approx(50_000)
    assert (cell["peak_allocated_bytes"], cell["rss_growth_bytes"], cell["timed_steps"]) == (20, 3, 30)
    assert pd.isna(cell["device_used_bytes"])

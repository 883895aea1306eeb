from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.checks.checks import pair_table, trial_costs
from crossover.statistics.summary import paired_ratio

Row = Callable[..., dict[str, Any]]


def test_the_ratio_of_pairs_is_a_paired_t_test_on_the_log_scale() -> None:
    random = np.random.default_rng(3)
    first = random.lognormal(0, 0.5, 20)  # pairs differ much, their sides little
    second = first * random.lognormal(0.01, 0.02, 20)
    found = paired_ratio(second.tolist(), first.tolist())
    interval = stats.ttest_rel(np.log(second), np.log(first)).confidence_interval(0.95)
    assert math.log(found.ratio) == pytest.approx(np.mean(np.log(second) - np.log(first)))
    assert (found.low, found.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


@pytest.mark.parametrize(
    ("factors", "agree"),
    [([0.99, 1.01, 1.0, 1.0], True), ([1.02, 1.021, 1.019, 1.02], False), ([0.8, 1.25, 0.8, 1.25], False)],
)
def test_to_agree_is_to_hold_one_and_be_narrow(factors: list[float], agree: bool) -> None:
    samples = pd.DataFrame({"cell": "a", "one": 1.0, "other": factors})
    (row,) = pair_table(samples, ["cell"], "one", "other", tolerance=0.04).to_dict("records")
    assert row["agree"] is agree
    assert (row["cell"], row["pairs"], row["one"]) == ("a", 4, 1.0)


def test_the_cost_of_a_trial_is_the_way_to_the_next_without_its_measuring(row: Row) -> None:
    def trial(number: int, second: float, status: str = "ok") -> dict[str, Any]:
        started = f"2026-01-01T00:{int(second // 60):02}:{second % 60:06.3f}+00:00"
        measured = {"warmup_s": 1.0, "timed_s": 2.0, "memory_pass_s": 0.5}
        return row(trial=number, started_at=started, status=status, isolation="server", **measured)

    table = pd.DataFrame(
        [trial(3, 30), trial(1, 10), trial(2, 13.75), trial(4, 34.5, "oom"), trial(5, 200), trial(6, 204)]
    )
    costs = trial_costs(table)
    # 1 to 2 takes 3.75 s, 2 to 3 takes 16.25 s, 3 to 4 takes 4.5 s; 4 is not ok, 5 starts 166 s later, 6 is the last.
    assert costs["trial"].tolist() == [1, 2, 3, 5]
    assert costs["cost_s"].tolist() == pytest.approx([0.25, 12.75, 1.0, 0.5])

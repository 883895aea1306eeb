from __future__ import annotations

import pytest

from crossover.measurement.process.supervision import ENDING_LIMIT_S, START_LIMIT_S
from crossover.plan.runtimes import runtime_min


def test_a_job_asks_for_whole_minutes_of_each_of_its_processes() -> None:
    assert runtime_min(300) == 5 + 6
    assert runtime_min(301, 2) == 2 * (6 + 6)


@pytest.mark.parametrize("limit_s", [1.0, 60.0, 299.0, 3600.0])
def test_a_trial_that_is_measured_twice_ends_before_its_job_does(limit_s: float) -> None:
    assert 60 * runtime_min(limit_s, 2) >= 2 * (START_LIMIT_S + limit_s + ENDING_LIMIT_S)

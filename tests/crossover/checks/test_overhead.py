from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from check_overhead import trial_costs


def test_the_cost_of_a_trial_is_the_way_to_the_next_without_its_measuring(row: Callable[..., dict[str, Any]]) -> None:
    """1 to 2 takes 3.75 s, 2 to 3 16.25 s, 3 to 4 4.5 s; 4 is not ok, 5 starts 166 s later, 6 is the last."""

    def trial(number: int, second: float, status: str = "ok") -> dict[str, Any]:
        started = f"2026-01-01T00:{int(second // 60):02}:{second % 60:06.3f}+00:00"
        measured = {"warmup_s": 1.0, "timed_s": 2.0, "memory_pass_s": 0.5}
        return row(trial=number, started_at=started, status=status, isolation="server", **measured)

    table = pd.DataFrame(
        [trial(3, 30), trial(1, 10), trial(2, 13.75), trial(4, 34.5, "oom"), trial(5, 200), trial(6, 204)]
    )
    costs = trial_costs(table)
    assert costs["trial"].tolist() == [1, 2, 3, 5]
    assert costs["cost_s"].tolist() == pytest.approx([0.25, 12.75, 1.0, 0.5])

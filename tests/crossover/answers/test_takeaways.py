"""Every kind of figure is summed up in one line, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.answers.takeaways import TAKEAWAYS, takeaway
from crossover.figures.views import StudyView

PowerLaws = Callable[..., pd.DataFrame]
Views = Callable[..., StudyView]

MEASURED: dict[str, Any] = {
    "latencies_s": [0.9, 1.0, 1.2],
    "latencies_cold_s": [2.0],
    "flops_per_step": 10**9,
    "peak_rss_bytes": 2,
    "base_rss_bytes": 1,
    "peak_allocated_bytes": 3,
    "host_bound_share": 0.5,
    "energy_per_step_j": 0.1,
}


def rows(power_laws: PowerLaws, trials: int, **values: Any) -> list[dict[str, Any]]:
    both = pd.concat([power_laws({2: 100, 4: 9000}, trials=trials, precision=p, **MEASURED) for p in ("fp32", "bf16")])
    return both.assign(**values).to_dict("records")


@pytest.mark.parametrize("kind", TAKEAWAYS)
def test_one_trial_is_said_to_be_indicative_and_three_are_not(power_laws: PowerLaws, view_of: Views, kind: str) -> None:
    text = takeaway(kind, view_of(rows(power_laws, 1)))
    assert "indicative" in text
    assert "95 %" not in text
    assert "\n" not in text
    assert text.endswith(".")
    assert "indicative" not in takeaway(kind, view_of(rows(power_laws, 3)))


@pytest.mark.parametrize("kind", TAKEAWAYS)
def test_where_nothing_ended_well_nothing_is_claimed(power_laws: PowerLaws, view_of: Views, kind: str) -> None:
    lost = rows(power_laws, 1, status="invalid", step_time_s=None)
    text = takeaway(kind, view_of(lost))
    assert text == "" or text.startswith("No crossover can be given")


@pytest.mark.parametrize("kind", TAKEAWAYS)
def test_of_a_study_without_cells_nothing_is_said(power_laws: PowerLaws, view_of: Views, kind: str) -> None:
    assert takeaway(kind, view_of(rows(power_laws, 1, study="another"))) == ""

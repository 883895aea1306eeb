"""A short version of check_rankings.py."""

from __future__ import annotations

import pytest
from check_rankings import APART, CROSSING, EQUAL, HOSTS, MERGED, REFERENCES, RankingCase, ranking_rows

from crossover.topics.ranking import table as machines


@pytest.mark.parametrize(
    ("where", "truth", "least_said"),
    [(MERGED, EQUAL, 0.0), (MERGED, APART, 0.8), (REFERENCES, HOSTS, 0.0), (REFERENCES, CROSSING, 0.8)],
)
def test_few_rankings_are_false(where: str, truth: str, least_said: float) -> None:
    """At most one of 20 runs; without the correction, or the allowance for hosts, most of those without a difference.

    `least_said` is the minimum share of runs in which a side is behind another.
    """
    (found,) = ranking_rows(RankingCase(where, truth, 8), 20, seed=0).to_dict("records")
    assert found["false_fastest"] <= found["false"] <= 0.05
    assert found["ranks"] >= least_said


def test_the_simulation_finds_false_rankings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of hosts that are taken to be alike."""
    monkeypatch.setattr(machines, "host_spread", lambda _: 0.0)
    (found,) = ranking_rows(RankingCase(REFERENCES, HOSTS, 8), 20, seed=0).to_dict("records")
    assert found["false"] > 0.2

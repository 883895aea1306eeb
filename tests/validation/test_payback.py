"""A short version of check_payback.py."""

from __future__ import annotations

import pytest
from check_payback import PaybackCase, payback_rows


@pytest.mark.parametrize("trials", [3, 4, 8])
@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_the_interval_contains_the_true_number_of_steps(trials: int, spread: float) -> None:
    """With a coverage of 95 %, at most 273 of 300 intervals contain it about once in 400 times."""
    (row,) = payback_rows(PaybackCase(trials, spread, speedup=2.0, correlation=0.8), 300, seed=0).to_dict("records")
    assert row["found"] > 0.9
    assert row["coverage"] > 0.91


def test_a_payback_hidden_by_the_spread_is_rarely_claimed() -> None:
    (row,) = payback_rows(PaybackCase(3, 0.25, speedup=1.2, correlation=0.0), 300, seed=0).to_dict("records")
    assert row["found"] * (1 - row["coverage"]) < 0.05

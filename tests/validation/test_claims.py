"""A short version of check_claims.py."""

from __future__ import annotations

import check_claims
import pytest
import simulation
from check_claims import AT_END, BELOW, EQUAL, INSIDE, RATIO_AT_END, ClaimCase, claim_rows, simulate_verdicts


@pytest.mark.parametrize(
    ("case", "simulations", "most"),
    [
        pytest.param(ClaimCase(EQUAL, "", 3), 100, 11, marks=pytest.mark.slow),
        (ClaimCase(AT_END, "shallow", 3), 50, 7),
        pytest.param(ClaimCase(RATIO_AT_END, "", 3), 100, 11, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_at_most_5_percent_of_true_claims_differ(case: ClaimCase, simulations: int, most: int) -> None:
    """The limit is 5 % plus 3 standard errors.

    Without the correction for 11 sizes, 17 % of the claims with equal sides would differ, 15 of these 100; and with an
    interval of 70 %, 13 of the 100 ratios.
    """
    assert simulate_verdicts(case, simulations, seed=1).count("differs") <= most


def test_a_limit_is_hardly_ever_said_to_hold_or_not_against_the_truth() -> None:
    """At the limit, where both are false, 5 % of 25 are expected; if 5 % above it, under 2.5 % are `reproduced`.

    None is compatible: 95 and 57 % were.
    """
    below, at_limit, above = (simulate_verdicts(ClaimCase(name, "", 3), 25, seed=1) for name in BELOW)
    assert below.count("differs") == 0
    assert at_limit.count("reproduced") <= 3
    assert above.count("reproduced") <= 2
    assert "compatible" not in {*below, *at_limit, *above}


def test_without_noise_a_true_claim_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "SAMPLE_SD", 1e-9)
    monkeypatch.setattr(simulation, "OUTLIER_SHARE", 0.0)
    monkeypatch.setattr(simulation, "PROCESS_SD", (1e-6, 2e-6))
    monkeypatch.setattr(check_claims, "NOISES", ("lognormal",))
    (row,) = claim_rows(ClaimCase(INSIDE, "launch_floor", 3), 5, seed=0).to_dict("records")
    assert (row["truth"], row["reproduced"], row["differs"]) == (INSIDE, 1, 0)

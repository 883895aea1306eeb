from __future__ import annotations

import math

from crossover.measurement.clock.time_limit import too_slow


def test_a_trial_may_take_its_whole_limit() -> None:
    assert too_slow(1.0, 0.5, 4, 3.0) is None
    assert too_slow(1e9, 1e9, 10, math.inf) is None


def test_a_trial_that_would_take_longer_says_how_long_and_what_to_do() -> None:
    error = too_slow(1.0, 0.5, 5, 3.0)
    assert str(error) == (
        "a step takes 0.5 s, so that the trial would take at least 3.5 s, more than the limit of 3 s; "
        "raise time_limit_s, or leave the cell out"
    )

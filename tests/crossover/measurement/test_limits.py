from __future__ import annotations

import signal
import time

import pytest

from crossover.measurement import limits
from crossover.measurement.limits import TimeLimitError, time_limit


def test_the_limit_ends_a_block_that_goes_on() -> None:
    with pytest.raises(TimeLimitError, match=r"not done after 0\.05 s"), time_limit(0.05):
        while True:
            time.sleep(0.001)


def test_a_limit_that_was_swallowed_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPEAT_S", 0.05)
    swallowed = 0
    with pytest.raises(TimeLimitError), time_limit(0.05):
        while True:
            try:
                time.sleep(0.001)
            except TimeLimitError:
                swallowed += 1
                if swallowed == 2:
                    raise


def test_a_block_in_time_is_left_alone_and_so_is_what_follows() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)

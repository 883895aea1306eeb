"""The time limit of a trial."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REPEAT_S = 1.0
"""The alarm comes again: a finaliser, or a library that catches every exception, may swallow the first one."""


class TimeLimitError(Exception):
    """The trial's time limit passed."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError in the block once `seconds` have passed, as soon as the operation in progress returns.

    An alarm costs the timed steps nothing, and it reaches the building of a model too.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeLimitError(f"not done after {seconds:g} s; raise time_limit_s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_S)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

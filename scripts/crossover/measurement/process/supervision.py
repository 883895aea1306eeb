"""Supervise a measuring process: wait for it and find out how it ended. Does not import torch."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from crossover.errors import STOPPED
from crossover.measurement.process.children import Child, Ending
from crossover.measurement.process.jobs import REFUSED, Outcome
from crossover.measurement.process.messages import wait_readable

START_LIMIT_S = 300.0
"""Maximum time for the start of a process; importing torch from a cold network file system can take minutes."""

ENDING_LIMIT_S = 20.0
"""Maximum time from a process's last message to its end; closing a CUDA context takes a second or two."""

POLL_S = 1.0

CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
TERMINATING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ChildFailedError(Exception):
    """The job failed without an outcome. If `exit_code` is set, the measuring process has printed the error."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StoppedError(SystemExit):
    """A signal, such as a scheduler's, asked the job or its child to stop; the job has not failed."""

    def __init__(self, by: signal.Signals) -> None:
        super().__init__(128 + by)
        self.by = by


class ChildLostError(Exception):
    """The child is gone, and it is not known how it ended."""


def kernel_oom_kills(root: Path = Path("/")) -> int | None:
    """Number of processes that the kernel's out-of-memory killer has ended on this host so far; None if unknown."""
    statistics = root / "proc/vmstat"
    match = re.search(r"^oom_kill (\d+)$", statistics.read_text(), re.MULTILINE) if statistics.is_file() else None
    return int(match[1]) if match else None


def supervise(
    child: Child,
    time_limit_s: float,
    oom_kills: Callable[[], int | None] = kernel_oom_kills,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Wait until a child ends, or kill it `time_limit_s` after its message `begun`; returns the job's outcome.

    Raises ChildFailedError if the child failed or did not begin, StoppedError if a signal of TERMINATING ended it,
    ChildLostError if it is not known how it ended.
    """
    try:
        return _wait(child, time_limit_s, oom_kills, clock)
    finally:
        child.kill()  # also ends processes that the child has left behind, such as data loaders


def _wait(
    child: Child, time_limit_s: float, oom_kills: Callable[[], int | None], clock: Callable[[], float]
) -> Outcome:
    kills_before = oom_kills()
    facts: dict[str, Any] | None = None
    done: dict[str, Any] | None = None
    passing: dict[str, Any] | None = None
    doing, remedy = None, "raise time_limit_s"
    has_failed, lost = False, None
    deadline = clock() + START_LIMIT_S
    ending: Ending | None = None
    while ending is None and done is None:
        if clock() >= deadline:
            if facts is None:
                raise ChildFailedError(f"the measuring process did not begin within {START_LIMIT_S:g} s")
            late = _during(doing, f"not done after {time_limit_s:g} s; {remedy}")
            return _with_time(Outcome("timeout", late, False, facts), passing)
        wait_readable(child.inbox.descriptor, min(deadline - clock(), POLL_S))
        ending = child.ending(0)
        if child.inbox.closed and ending is None:  # the child is gone, but its server has not reported how it ended
            ending = child.ending(ENDING_LIMIT_S)
            if ending is None:
                raise ChildLostError("the measuring process closed its messages, and its server did not report why")
        while (message := child.inbox.next(0)) is not None:
            match message:
                case {"begun": facts}:
                    deadline = clock() + time_limit_s
                case {"known": columns}:
                    facts = {**(facts or {}), **columns}
                case {"doing": doing}:
                    remedy = message.get("remedy", "raise time_limit_s")
                case {"lost": lost}:
                    pass
                case {"failed": _}:
                    has_failed = True
                case {"passing": _}:
                    passing = message
                case {"done": _}:
                    done = message
    if done is not None:
        status, transient = done["done"], done.get("transient", False)
        child.wait_for_end(ENDING_LIMIT_S, is_final=status != REFUSED and not transient)
        return Outcome(status, done["reason"], status != REFUSED, facts or {}, done.get("result", {}), transient)
    who = "the measuring process" if lost is None else lost["name"]
    if lost is not None and "reason" in lost:
        reason = _during(doing, f"{who}: {lost['reason']}")
        if facts is None:
            raise ChildFailedError(reason)
        return _with_time(Outcome(lost["status"], reason, False, facts, transient=lost["is_lost"]), passing)
    if lost is not None:
        ending = Ending(signal=lost["signal"])
    if ending is None or ending == Ending():
        raise ChildLostError("the measuring process is gone, and its server did not report how it ended")
    if ending.signal is None:
        reason = _during(doing, f"{who} ended with status {ending.exit_code} without a message")
        raise ChildFailedError(reason, ending.exit_code if has_failed else None)
    by = signal.Signals(ending.signal)
    if by in TERMINATING:
        raise StoppedError(by)
    if facts is None:
        raise ChildFailedError(f"{who} was ended by {by.name} before it began")
    kills_after = oom_kills()
    out_of_memory = kills_before is not None and kills_after is not None and kills_after > kills_before
    status, transient = "invalid", False
    if by == signal.SIGKILL and out_of_memory:
        status = "oom"
        reason = "ended by the kernel's out-of-memory killer: the host or the job's control group ran out of memory"
    elif by in CRASHES:
        reason = f"{who} crashed ({by.name}); PYTHONFAULTHANDLER=1 shows where"
    else:
        reason, transient = f"{who} was ended from outside ({by.name})", True
    return _with_time(Outcome(status, _during(doing, reason), False, facts, transient=transient), passing)


def _during(doing: str | None, reason: str) -> str:
    return f"{doing}: {reason}" if doing else reason


def _with_time(outcome: Outcome, passing: dict[str, Any] | None) -> Outcome:
    """Add the row of the last message `passing` to the outcome, if the trial has sent one."""
    if passing is None:
        return outcome
    failed, *later = passing["passing"]
    undone = f"{failed}: {outcome.reason}" + (f"; not begun: {', '.join(later)}" if later else "")
    columns = {**outcome.facts, **passing["row"]}
    columns["flag_names"] = list(dict.fromkeys([*columns["flag_names"], "incomplete"]))
    status, reason = columns.pop("status"), columns.pop("reason")
    reason = undone if reason is None else f"{reason}; {undone}"
    return Outcome(status, reason, False, columns, transient=passing["transient"])


@contextmanager
def exit_statuses() -> Iterator[None]:
    """Exit after cleaning up, with 128 plus a signal's number, or with the status of a failed measuring process.

    After a signal, the last line on standard error begins with STOPPED.
    """

    def interrupt(signal_number: int, _frame: FrameType | None) -> None:
        for other in TERMINATING:
            signal.signal(other, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        raise StoppedError(signal.Signals(signal_number))

    before = {signal_number: signal.signal(signal_number, interrupt) for signal_number in TERMINATING}
    try:
        yield
    except StoppedError as stop:
        print(f"{STOPPED} ({stop.by.name})", file=sys.stderr)
        raise
    except ChildFailedError as failure:
        sys.exit(failure.exit_code or f"error: {failure}")
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)

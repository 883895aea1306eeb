"""The outcome for each way in which a fake child may end; test_planted_faults.py has real children."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.process import supervision
from crossover.measurement.process.children import Ending
from crossover.measurement.process.jobs import Outcome
from crossover.measurement.process.messages import Inbox, send
from crossover.measurement.process.supervision import (
    ChildFailedError,
    ChildLostError,
    StoppedError,
    exit_statuses,
    kernel_oom_kills,
    supervise,
)

FACTS = {"parameters": 6}


class FakeChild:
    """A child that has sent these messages and has ended with `end`, or runs until it is killed if that is None."""

    def __init__(self, messages: list[dict[str, Any]], end: Ending | None) -> None:
        reader, self.writer = os.pipe()
        for message in messages:
            send(self.writer, message)
        self.inbox = Inbox(reader)
        self.end = end
        self.killed = False
        self.waits: list[bool] = []

    def ending(self, wait_s: float) -> Ending | None:
        del wait_s
        return Ending(signal=signal.SIGKILL) if self.killed else self.end

    def wait_for_end(self, wait_s: float, *, is_final: bool) -> None:
        del wait_s
        self.waits.append(is_final)

    def kill(self) -> None:
        self.killed = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "POLL_S", 0.001)


def watch(child: FakeChild, kills: tuple[int | None, int | None] = (0, 0), limit_s: float = 50) -> Outcome:
    readings: Iterator[int | None] = iter(kills)
    return supervise(child, limit_s, lambda: next(readings), Clock())


@pytest.mark.parametrize("end", [Ending(exit_code=0), None])
def test_a_child_that_is_done_is_ended(end: Ending | None) -> None:
    child = FakeChild([{"begun": FACTS}, {"done": "oom", "reason": "full"}], end)
    assert watch(child) == Outcome("oom", "full", True, FACTS)
    assert child.killed


@pytest.mark.parametrize(
    ("message", "is_final"),
    [
        ({"done": "ok"}, True),
        ({"done": "invalid", "transient": True}, False),  # the trial is measured once more
        ({"done": "refused"}, False),  # the step is tried on the CPU
    ],
)
def test_a_child_is_waited_for_if_its_parent_runs_another_one(message: dict[str, Any], is_final: bool) -> None:
    child = FakeChild([{"begun": FACTS}, {"reason": None, **message}], None)
    watch(child)
    assert child.waits == [is_final]


def test_a_child_that_never_begins_is_a_failure() -> None:
    child = FakeChild([], None)
    with pytest.raises(ChildFailedError, match="did not begin within 300 s") as failure:
        watch(child)
    assert failure.value.exit_code is None
    assert child.killed


@pytest.mark.parametrize(
    ("end", "kills", "status", "reason"),
    [
        (signal.SIGKILL, (3, 4), "oom", "ended by the kernel's out-of-memory killer"),
        (signal.SIGKILL, (3, 3), "invalid", "the measuring process was ended from outside (SIGKILL)"),
        (signal.SIGSEGV, (3, 4), "invalid", "the measuring process crashed (SIGSEGV)"),
    ],
)
def test_an_end_by_a_signal(
    end: signal.Signals, kills: tuple[int | None, int | None], status: str, reason: str
) -> None:
    outcome = watch(FakeChild([{"begun": FACTS}], Ending(signal=end)), kills)
    assert (outcome.status, outcome.written, outcome.facts) == (status, False, FACTS)
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)
    assert outcome.transient is ("from outside" in reason)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("state", ["starting", "begun", "timed"])
def test_a_child_that_is_asked_to_stop_has_no_result(by: signal.Signals, state: str) -> None:
    messages = {"starting": [], "begun": [{"begun": FACTS}], "timed": timed()}[state]
    child = FakeChild(messages, Ending(signal=by))
    with pytest.raises(StoppedError) as end:
        watch(child)
    assert end.value.code == 128 + by
    assert child.killed


TIMED = {"step_time_s": 0.5, "flag_names": ["drift", "not_checked"], "status": "ok", "reason": None}
PASSES = ["numerical check", "memory pass", "profile"]


def timed(passing: list[str] = PASSES, transient: bool = False, **row: Any) -> list[dict[str, Any]]:
    """The messages of a child that has begun a pass after its timing."""
    return [{"begun": FACTS}, {"passing": passing, "row": {**TIMED, **row}, "transient": transient}]


@pytest.mark.parametrize(
    ("end", "kills", "why"),
    [
        (None, (0, 0), "not done after 50 s; raise time_limit_s"),
        (signal.SIGSEGV, (0, 0), "the measuring process crashed (SIGSEGV)"),
        (signal.SIGKILL, (3, 4), "ended by the kernel's out-of-memory killer"),
        (signal.SIGKILL, (3, 3), "the measuring process was ended from outside (SIGKILL)"),
    ],
)
def test_an_end_during_a_pass_keeps_the_time(end: signal.Signals | None, kills: tuple[int, int], why: str) -> None:
    child = FakeChild(timed(), None if end is None else Ending(signal=end))
    outcome = watch(child, kills)
    assert (outcome.status, outcome.written, outcome.transient) == ("ok", False, False)
    assert (outcome.reason or "").startswith(f"numerical check: {why}")
    assert (outcome.reason or "").endswith("; not begun: memory pass, profile")
    assert outcome.facts == {**FACTS, "step_time_s": 0.5, "flag_names": ["drift", "not_checked", "incomplete"]}
    assert child.killed


@pytest.mark.parametrize("transient", [True, False])
def test_an_invalid_time_stays_invalid_if_a_pass_ends_early(transient: bool) -> None:
    reason = "other compute processes on the GPU (1)"
    outcome = watch(FakeChild(timed(["memory pass"], transient, status="invalid", reason=reason), None))
    assert (outcome.status, outcome.transient) == ("invalid", transient)
    assert outcome.reason == f"{reason}; memory pass: not done after 50 s; raise time_limit_s"


@pytest.mark.parametrize("status", [0, 3])
def test_user_code_that_ends_the_process_is_named(status: int) -> None:
    """The user's file may call `os._exit`."""
    messages = [{"begun": FACTS}, {"doing": "the import of net.py"}]
    with pytest.raises(ChildFailedError) as failure:
        watch(FakeChild(messages, Ending(exit_code=status)))
    reason = f"the import of net.py: the measuring process ended with status {status} without a message"
    assert (str(failure.value), failure.value.exit_code) == (reason, None)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"doing": "build(8, 4) of net.py"}], "build(8, 4) of net.py: not done after 50 s; raise time_limit_s"),
        ([{"doing": "the import of net.py", "remedy": "cut it"}], "the import of net.py: not done after 50 s; cut it"),
        ([{"doing": "build(8, 4) of net.py"}, {"doing": None}], "not done after 50 s; raise time_limit_s"),
    ],
)
def test_user_code_that_takes_too_long_is_named(messages: list[dict[str, Any]], reason: str) -> None:
    child, clock = FakeChild([{"begun": FACTS}, {"known": {"parameters": 7}}, *messages], None), Clock()
    assert supervise(child, 50, lambda: 0, clock) == Outcome("timeout", reason, False, {"parameters": 7})
    assert 50 <= clock.now < 60  # from the beginning
    assert child.killed


def test_a_child_that_is_gone_without_a_report_is_lost() -> None:
    """The child's pipe is closed, but its server does not report how the child ended."""
    child = FakeChild([{"begun": FACTS}], None)
    os.close(child.writer)
    with pytest.raises(ChildLostError, match="closed its messages"):
        watch(child, limit_s=1e9)
    assert child.killed


def test_oom_kills_are_read_from_the_kernel(tmp_path: Path) -> None:
    assert kernel_oom_kills(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "vmstat").write_text("pgfault 12\noom_kill 7\noom_kill_all 9\n")
    assert kernel_oom_kills(tmp_path) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cleans_up_first(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    cleaned = []
    with pytest.raises(SystemExit) as end, exit_statuses():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)  # a second signal changes nothing
            cleaned.append(True)
    assert end.value.code == 128 + number
    assert cleaned
    assert capsys.readouterr().err == f"stopped by a signal ({number.name})\n"
    assert signal.getsignal(number) == before


OTHER = "process 2 of 4"


@pytest.mark.parametrize(
    ("lost", "kills", "status", "reason", "transient"),
    [
        ({"signal": signal.SIGKILL}, (3, 3), "invalid", f"{OTHER} was ended from outside (SIGKILL)", True),
        ({"signal": signal.SIGKILL}, (3, 4), "oom", "ended by the kernel's out-of-memory killer", False),
        ({"signal": signal.SIGSEGV}, (3, 3), "invalid", f"{OTHER} crashed (SIGSEGV)", False),
        ({"status": "oom", "reason": "CUDA out of memory"}, (3, 3), "oom", f"{OTHER}: CUDA out of memory", False),
    ],
)
def test_the_process_of_several_that_ended_is_named(
    lost: dict[str, Any], kills: tuple[int, int], status: str, reason: str, transient: bool
) -> None:
    message = {"lost": {"name": OTHER, "is_lost": False, **lost}}
    outcome = watch(FakeChild([{"begun": FACTS}, message], Ending(exit_code=1)), kills)
    assert (outcome.status, outcome.written, outcome.transient) == (status, False, transient)
    assert (outcome.reason or "").startswith(reason)
    during_pass = watch(FakeChild([*timed(), message], Ending(exit_code=1)), kills)
    assert (during_pass.status, during_pass.facts["step_time_s"]) == ("ok", 0.5)
    assert (during_pass.reason or "").startswith(f"numerical check: {reason}")
    with pytest.raises(ChildFailedError, match=f"^{OTHER}"):
        watch(FakeChild([message], Ending(exit_code=1)), kills)

"""Turns on the host with real processes, step by step."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from crossover.errors import UserError
from crossover.machine import turns
from crossover.machine.locks import LEASES, PRIVATE, QUIET_S, holders_of, locked, make_folder
from crossover.machine.turns import (
    BATCH_JOBS,
    HANDED_DOWN,
    Turn,
    computing,
    hand_down_turns,
    host_turn,
    turn_of_others,
)
from processes import wait_for

USER = psutil.Process().username()


class Worker:
    """A process that takes a turn on command and reports its events with their times."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", root / "tests" / "turn_worker.py", *arguments],
            env=os.environ | {"PYTHONPATH": str(root / "scripts")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.next("ready")

    def next(self, start: str) -> tuple[float, str]:
        """Time and text of the next event, which must begin with `start`."""
        assert self.process.stdout is not None
        when, _, event = self.process.stdout.readline().strip().partition(" ")
        assert event.startswith(start), event
        return float(when), event

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def begin(self) -> float:
        """Let it take a turn, which must be free; returns the time."""
        self.go_on()
        return self.next("begins")[0]

    def wait(self) -> str:
        """Let it request a turn that is not free; returns its message once it waits."""
        self.go_on()
        _, line = self.next("waiting")
        wait_for(lambda: psutil.Process(self.process.pid).status() == psutil.STATUS_SLEEPING, "the process to sleep")
        return line

    def end(self) -> float:
        self.go_on()
        return self.next("ends")[0]


Start = Callable[..., Worker]


@pytest.fixture(autouse=True)
def no_batch_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*BATCH_JOBS, HANDED_DOWN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(LEASES, str(tmp_path / "locks"))


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    started: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        started.append(Worker(root, *arguments))
        return started[-1]

    yield begin
    for worker in started:
        with worker.process:
            worker.process.kill()


def never(*_: object) -> None:
    pytest.fail("nothing to wait for")


def test_a_cpu_trial_waits_for_gpu_trials_and_later_trials_wait_for_it(start: Start) -> None:
    """Otherwise successive GPU trials could keep a CPU trial waiting until they are all done."""
    gpu, gpu_too, cpu, later = (start(how) for how in ("beside", "beside", "alone", "beside"))
    gpu.begin()
    gpu_too.begin()
    line = cpu.wait()
    assert line.startswith("waiting for a turn on this host, which is used by turn_worker.py (pid ")
    assert f"(pid {gpu.process.pid}, user {USER})" in line
    assert f"(pid {gpu_too.process.pid}, user {USER})" in line
    later.wait()
    gpu.end()
    last_end = gpu_too.end()
    began, _ = cpu.next("begins")
    ended = cpu.end()
    assert last_end < began < ended < later.next("begins")[0]


def test_a_wait_for_a_finished_trial_whose_process_is_ending_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    with ExitStack() as ending:
        ending.enter_context(locked(tmp_path / "turn", fcntl.LOCK_EX))

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if sum(slept) >= QUIET_S / 2:
                ending.close()

        monkeypatch.setattr("crossover.machine.locks.time.sleep", sleep)
        with locked(tmp_path / "turn", fcntl.LOCK_EX, never):
            assert sum(slept) == QUIET_S / 2


def test_turns_are_first_come_first_served(start: Start) -> None:
    first, *others = (start("alone") for _ in range(4))
    first.begin()
    for worker in others:
        worker.wait()
    ended = first.end()
    for worker in others:
        began, _ = worker.next("begins")
        assert began > ended
        ended = worker.end()


def test_the_turn_of_a_killed_trial_ends_even_if_its_child_is_alive(start: Start) -> None:
    killed, waiting = start("alone", "fork"), start("beside")
    killed.go_on()
    child = int(killed.next("child")[1].split()[1])
    killed.next("begins")
    waiting.wait()
    killed.process.kill()
    killed.process.wait()
    waiting.next("begins")
    os.kill(child, signal.SIGKILL)  # raises if the process is gone


@pytest.fixture
def collecting() -> Iterator[None]:
    """Garbage is collected as before once the test has ended."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("collecting")
def test_computing_jobs_have_the_host_exclusively(start: Start) -> None:
    trial = start("beside")
    assert turn_of_others(os.environ) is None
    with computing():
        assert gc.get_freeze_count() > 0
        assert f"(pid {os.getpid()}, user {USER})" in trial.wait()
    trial.next("begins")
    assert f"(pid {trial.process.pid}, user {USER})" in str(turn_of_others(os.environ))


def test_batch_jobs_wait_only_for_jobs_in_their_allocation(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with host_turn(os.environ, alone=True, tell=never):
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        with host_turn(os.environ, alone=True, tell=never) as turn:
            assert turn == Turn(0.0)
        hand_down_turns()
        first, second = start("alone"), start("alone")
        first.begin()
        second.wait()
        monkeypatch.setenv("SLURM_JOB_ID", "8")
        hand_down_turns()
        start("alone").begin()
    assert {path.name for path in (tmp_path / "locks").glob("*.turn")} == {
        f"host.{os.getuid()}.turn",
        f"SLURM_JOB_ID=7.{os.getuid()}.turn",
        f"SLURM_JOB_ID=8.{os.getuid()}.turn",
    }


@pytest.mark.parametrize(
    ("user", "how", "alone", "limit_s", "misses"),
    [
        (1001, fcntl.LOCK_EX, True, 0.2, True),  # until the limit
        (1001, fcntl.LOCK_EX, False, 0.2, True),
        (1001, fcntl.LOCK_SH, False, 1e9, False),  # GPU trials run side by side
        (0, fcntl.LOCK_EX, True, 1e9, False),  # root waits for nobody else
    ],
)
def test_a_job_waits_for_other_users_only_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, how: int, alone: bool, limit_s: float, misses: bool
) -> None:
    """This process stands for one of the user with id 1000."""
    said: list[str] = []
    monkeypatch.setattr(turns, "LIMIT_S", limit_s)
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: time.time())
    folder = make_folder(tmp_path / "locks")
    with locked(folder / "host.1000.turn", how, mode=PRIVATE):
        monkeypatch.setattr(os, "getuid", lambda: user)
        with host_turn(os.environ, alone=alone, tell=said.append) as turn:
            who = f"(pid {os.getpid()}, user {USER})"
            assert (who in (turn.missed or "")) is misses
            assert len(said) == misses


def test_a_job_does_not_wait_for_another_users_process_that_is_older_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each trial of a run would wait up to the limit."""
    monkeypatch.setattr(turns, "LIMIT_S", 600.0)
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: time.time() - 601)
    with locked(make_folder(tmp_path / "locks") / "host.1000.turn", fcntl.LOCK_EX, mode=PRIVATE):
        monkeypatch.setattr(os, "getuid", lambda: 1001)
        with host_turn(os.environ, alone=True, tell=never) as turn:
            assert f"(pid {os.getpid()}, " in (turn.missed or "")


def test_a_lock_of_turns_cannot_be_taken_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with host_turn(os.environ, alone=True, tell=never):
        (file,) = (tmp_path / "locks").glob("*.turn")
        assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with (
        pytest.raises(UserError, match=r"host\.\d+\.queue belongs to another user"),
        host_turn(os.environ, alone=True, tell=never),
    ):
        pass


def test_holders_are_those_that_the_kernel_lists_without_those_that_wait(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    state = file.stat()
    name = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/locks").write_text(
        f"1: FLOCK  ADVISORY  READ {os.getpid()} {name} 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 4 {name} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 5 {name} 0 EOF\n3: FLOCK  ADVISORY  WRITE 6 {name}1 0 EOF\n"
        f"4: FLOCK  ADVISORY  WRITE 0 {name} 0 EOF\n"
    )
    first, hidden = holders_of(file, tmp_path)
    assert (first.pid, first.is_exclusive, hidden.is_exclusive) == (os.getpid(), False, True)
    assert first.description.endswith(f"(pid {os.getpid()}, user {USER})")
    assert hidden.running_s == 0
    assert holders_of(tmp_path / "gone", tmp_path) == []

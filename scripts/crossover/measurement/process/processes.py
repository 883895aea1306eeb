"""Measuring processes as their parent sees them, and the fresh ones."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from crossover.machine.code_key import LIBRARY
from crossover.measurement.process.messages import Inbox
from crossover.measurement.process.requests import Job


@dataclass(frozen=True)
class Ending:
    """How a process ended: its exit code or the signal that ended it; both None where nobody can tell."""

    exit_code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, code: int) -> Ending:
        """From a return code as `subprocess` gives it."""
        return cls(signal=-code) if code < 0 else cls(exit_code=code)


class Child(Protocol):
    """A measuring process."""

    inbox: Inbox

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when the process ends; None where the system has none."""
        ...

    def ending(self, wait_s: float) -> Ending | None:
        """How it ended; None if it is still running after `wait_s`."""
        ...

    def kill(self) -> None:
        """End it and everything it started, and wait until it is gone."""
        ...


@dataclass(frozen=True)
class Pipes:
    """The child's ends: a lifeline to read, messages to write; and the parent's."""

    lifeline: int
    messages: int
    parent_lifeline: int
    parent_messages: int

    @classmethod
    def open(cls) -> Pipes:
        """Two fresh pipes, none of which a process started elsewhere inherits."""
        lifeline, parent_lifeline = os.pipe()
        parent_messages, messages = os.pipe()
        return cls(lifeline, messages, parent_lifeline, parent_messages)

    def close_childs(self) -> None:
        """Close the ends that belong to the child, so that the parent sees the child close them."""
        os.close(self.lifeline)
        os.close(self.messages)

    def close_parents(self) -> None:
        """Close the parent's ends, which ends the child."""
        os.close(self.parent_lifeline)
        os.close(self.parent_messages)


class FreshProcess:
    """A measuring process that starts from nothing."""

    def __init__(self, job: Job, environment: Mapping[str, str] = os.environ) -> None:
        self.pipes = Pipes.open()
        handed = (self.pipes.lifeline, self.pipes.messages)
        self.process = subprocess.Popen(
            [*entry("child"), job.to_json(), *map(str, handed)],
            stdin=subprocess.DEVNULL,
            env=environment,
            pass_fds=handed,
            start_new_session=True,
        )
        self.pipes.close_childs()
        self.inbox = Inbox(self.pipes.parent_messages)
        self.exit_descriptor = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else None

    def fileno(self) -> int | None:
        """Readable when the process ends."""
        return self.exit_descriptor

    def ending(self, wait_s: float) -> Ending | None:
        """How it ended; None if it is still running after `wait_s`."""
        try:
            return Ending.of(self.process.wait(wait_s))
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process and its descendants."""
        kill_group(self.process.pid)
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Release the descriptors."""
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
            self.exit_descriptor = None
            self.pipes.close_parents()


def entry(module: str) -> list[str]:
    """The command that runs `main` of a module of this package in a Python process of its own."""
    room = "crossover.measurement.process"
    code = f"import sys; sys.path.insert(0, {str(LIBRARY)!r}); from {room}.{module} import main; main()"
    return [sys.executable, "-c", code]


def kill_group(pid: int) -> None:
    """Kill a process that leads a group of its own, and all of the group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def wait_readable(descriptors: list[int], seconds: float) -> list[int]:
    """The descriptors that are readable, after at most `seconds`."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return [descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000)]

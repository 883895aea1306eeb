"""User errors, and errors that end a measurement early."""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn

from crossover.files import relative_path, working_folder

STOPPED = "stopped by a signal"
"""Start of the last line of a job that a signal asked to stop, which is no failure."""


class UserError(Exception):
    """An error that the user can fix; its message is shown without a traceback."""


class UnsupportedError(Exception):
    """The cell is not supported."""


class TooSlowError(Exception):
    """The measurement would take longer than its time limit."""


class InvalidError(Exception):
    """The result cannot be used."""


class RefusedError(Exception):
    """A step failed, perhaps because the device, precision or execution does not support it.

    `mistake` is the message to show if the step fails on the CPU too. `is_lacking` is True if the error is typical of
    missing support.
    """

    def __init__(self, message: str, mistake: str, is_lacking: bool) -> None:
        super().__init__(message)
        self.mistake = mistake
        self.is_lacking = is_lacking


LONGEST_SHOWN = 100


def shown_value(value: object) -> str:
    """Format a value for a message, truncated if long."""
    return shown_text(repr(value))


def shown_text(text: str) -> str:
    """Truncate a string for a message if it is long."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def shown_path(path: Path) -> str:
    """Format a path for a message: relative if it lies below the working directory."""
    return relative_path(path) if path.is_relative_to(working_folder()) else str(path)


def allowed_names(name: str, names: Sequence[str]) -> str:
    """The allowed names, with a suggestion if one is close: "allowed: cpu, cuda (did you mean 'cuda'?)"."""
    return f"allowed: {', '.join(names)}{did_you_mean(name, names, 1)}"


def did_you_mean(name: str, names: Sequence[str], most: int) -> str:
    """A suggestion of up to `most` close names, " (did you mean 'a' or 'b'?)"; empty if none is close."""
    # Two common letters are not enough in a short name: `gpu` is not a misspelt `xpu`.
    close = difflib.get_close_matches(name, names, n=most, cutoff=0.7 if len(name) < 4 else 0.6)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


ASSERTED = "device-side assert triggered"
ASSERTION = (
    "an assertion failed on the GPU: usually labels lie outside the range of classes, or an index is out of range; "
    "the same command with --device=cpu shows the line"
)
"""Explanation of torch errors that contain ASSERTED."""

FULL_CODES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FULL_WORDS = re.compile("No space left on device|Disk quota exceeded|File too large")
SHARED_MEMORY_FULL = re.compile(r"(</torch_\w+>|shared memory).*No space left|workers are out of shared memory")
SHARED_MEMORY_ADVICE = (
    "the shared memory of data loaders is full; enlarge /dev/shm (in a container: --shm-size), or use num_workers=0"
)


def full_disk(error: BaseException) -> str | None:
    """A message with advice if an error reports a full disk or a full /dev/shm; otherwise None."""
    text = str(error).strip().partition("\n")[0]
    if not (isinstance(error, OSError) and error.errno in FULL_CODES) and not FULL_WORDS.search(text):
        return None
    if SHARED_MEMORY_FULL.search(text):
        return SHARED_MEMORY_ADVICE
    return f"no space left on the disk ({text}); free some and run the same command again: what has finished is kept"


@contextmanager
def _exit_on_closed_pipe() -> Iterator[None]:
    """Exit with SIGPIPE's status if nothing reads the program's output any more, as after `| head`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        try:
            print(flush=True)  # fails if standard output is the broken pipe
        except BrokenPipeError:
            # Python flushes standard output again on exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        raise  # another pipe broke


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Exit with status 1 and one line, instead of a traceback, for a UserError or a full disk."""
    try:
        with _exit_on_closed_pipe():
            yield
    except UserError as error:
        sys.exit(f"error: {error}")
    except Exception as error:
        if (message := full_disk(error)) is None:
            raise
        sys.exit(f"error: {message}")


def exit_with_status(main: Callable[[list[str]], int]) -> None:
    """Exit with the status that `main` returns, or with 2 for a UserError, since status 1 is a result of `main`."""
    with one_line_errors():
        try:
            sys.exit(main(sys.argv[1:]))
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)


@contextmanager
def logged(path: str) -> Iterator[None]:
    """Redirect a job's output to its log, and its error as one line."""
    with one_line_errors():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with (
            Path(path).open("w", encoding="utf-8") as log,
            redirect_stdout(log),
            redirect_stderr(log),
        ):
            try:
                yield
            except Exception as error:
                line = error if isinstance(error, UserError) else full_disk(error)
                print(f"error: {line}" if line else "".join(traceback.format_exception(error)).rstrip(), file=log)
                sys.exit(1)


class Parser(argparse.ArgumentParser):
    """A parser with errors of one line."""

    def error(self, message: str) -> NoReturn:
        hint = "" if "allowed:" in message else f"; `{self.prog} --help` lists what is allowed"
        self.exit(2, f"error: {message}{hint}\n")

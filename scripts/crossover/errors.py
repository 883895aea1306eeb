"""Errors that a user can cause, shown as one line, and errors that end a measurement early as a result of its own."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from crossover.failures import counted_failure


class UserError(Exception):
    """A mistake a user can mend; its text is one line: what, where, what is allowed, what to do."""


class UnsupportedError(Exception):
    """The device cannot do what the cell asks for."""


class TooSlowError(Exception):
    """The measurement would exceed its time limit."""


class InvalidError(Exception):
    """What was measured must not count."""


LONGEST_SHOWN = 100
"""Characters of a value that a message shows."""


def shown_value(value: object) -> str:
    """A value as a message shows it: on one line, and cut where it is long."""
    return shown_text(repr(value))


def shown_text(text: str) -> str:
    """A text, cut where it is long."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End the program with status 1 and the error's one line, without a traceback."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


@contextmanager
def logged(path: str) -> Iterator[None]:
    """Send what a job prints to its log; a user's error ends there as one line, any other as a traceback.

    A job that does not come to its end counts as a failure.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with (
        counted_failure(Path(path)),
        Path(path).open("w", encoding="utf-8") as log,
        redirect_stdout(log),
        redirect_stderr(log),
    ):
        try:
            yield
        except UserError as error:
            print(f"error: {error}", file=log)
            sys.exit(1)
        except Exception:
            traceback.print_exc(file=log)
            sys.exit(1)

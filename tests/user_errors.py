"""Helper for errors caused by a user, which are one line each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crossover.errors import UserError


def error_line(call: Callable[..., object], *arguments: object) -> str:
    """The message of the UserError that a call raises, which must be one line."""
    with pytest.raises(UserError) as raised:
        call(*arguments)
    line = str(raised.value)
    assert "\n" not in line
    assert len(line) < 700
    return line

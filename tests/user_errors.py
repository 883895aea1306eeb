"""Errors that a user causes, each one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crossover.errors import UserError


def error_line(call: Callable[..., object], *arguments: object) -> str:
    """The one line of the UserError that a call raises."""
    with pytest.raises(UserError) as raised:
        call(*arguments)
    line = str(raised.value)
    assert "\n" not in line
    assert len(line) < 700
    return line

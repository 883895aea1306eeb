"""Columns and JSON as the page carries them: small, and unable to end the element that they stand in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

DIGITS = 8
"""Significant digits of a number in the page; no screen shows more than four."""


def encoded(values: Sequence[Any]) -> list[Any] | dict[str, Any]:
    """A column without repetition: {"all": value}, or {"values": distinct, "at": place of each}, or as it is."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return {"all": distinct[0]}
    if len(distinct) > len(values) / 2:
        return list(values)
    places = {value: place for place, value in enumerate(distinct)}
    return {"values": distinct, "at": [places[value] for value in values]}


def plain(values: Iterable[Any]) -> list[Any]:
    """Values as JSON has them: missing ones None, numbers to eight digits, lists as words."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return " ".join(map(str, value))
    if value is None or pd.isna(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        rounded = float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
        return int(rounded) if rounded is not None and rounded.is_integer() else rounded
    return str(value)


def script_json(data: object) -> str:
    """JSON that is safe inside of a script element whatever it holds: no `<`, nothing but ASCII."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

"""What a cell or a line is called beside its neighbours: by what sets it apart from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from crossover.figures.style import spaced

NAMED_AXES = ("machine", "size", "variant", "protocol", "batch_size", "precision", "execution")
"""The axes that a name is made of, in its order; the device has a panel, a group or a colour of its own."""


def varying(table: pd.DataFrame, axes: Iterable[str] = NAMED_AXES) -> list[str]:
    """Those of the axes in which the rows of a table differ."""
    return [axis for axis in axes if axis in table and table[axis].nunique() > 1]


def name_by(row: Mapping[str, Any], axes: Iterable[str]) -> str:
    """'channels last, batch 8, amp-fp16': a row's values on the given axes, where it has them."""
    return ", ".join(_word(row, axis) for axis in axes if axis in row and not pd.isna(row[axis]))


def _word(row: Mapping[str, Any], axis: str) -> str:
    value = row[axis]
    if axis == "size":
        return f"{value:,} {row.get('size_name') or ''}".strip()
    if axis == "batch_size":
        return f"batch {value:,}"
    return str(value) if axis == "machine" else spaced(str(value))

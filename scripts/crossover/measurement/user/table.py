"""The rows of a user's table as samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch.utils.data import TensorDataset

from crossover.config.models import Table
from crossover.config.table_files import inputs_of, read_columns
from crossover.errors import UserError, shown_path, shown_value
from crossover.measurement.user.loss import ClassLabels

NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


class TableSamples(TensorDataset):
    """Inputs (rows, columns) in float32, and targets (rows,): numbers in float32 or classes from 0 in int64."""

    def __init__(self, inputs: npt.NDArray[np.float32], targets: npt.NDArray[np.generic], labels: ClassLabels | None):
        super().__init__(torch.from_numpy(inputs), torch.from_numpy(targets))
        self.labels = labels
        """The classes of the targets; None for a regression."""


def samples_of(table: Table) -> TableSamples:
    """The rows of a table; targets that are whole numbers, booleans or strings become classes, in sorted order.

    Raises UserError if there are no rows, or if values are missing, infinite or unsupported.
    """
    shown, names = shown_path(Path(table.file)), inputs_of(table)
    rows = read_columns(Path(table.file), [*names, table.targets])
    if not rows.num_rows:
        raise UserError(f"{shown}: has columns but no rows; give one row per sample")
    where = {name: f"{shown}: column {shown_value(name)}" for name in (*names, table.targets)}
    inputs = np.stack([_numbers(_decoded(rows.column(name)), where[name]) for name in names], axis=1)
    targets, of_targets = _decoded(rows.column(table.targets)), where[table.targets]
    is_text = _is_any(TEXTS, targets)
    without_fraction = pa.types.is_decimal(targets.type) and targets.type.scale <= 0
    if not (is_text or without_fraction or _is_any((pa.types.is_integer, pa.types.is_boolean), targets)):
        return TableSamples(inputs, _numbers(targets, of_targets, "numbers, true and false, or texts"), None)
    _check_present(targets, targets.null_count, of_targets)
    values, classes = np.unique(targets.to_numpy(), return_inverse=True)
    numeric = not is_text and not pa.types.is_boolean(targets.type)
    return TableSamples(inputs, classes.astype(np.int64), ClassLabels.of_table(of_targets, len(values), numeric))


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_any(kinds: tuple[Any, ...], column: pa.ChunkedArray) -> bool:
    return any(is_kind(column.type) for is_kind in kinds)


def _numbers(column: pa.ChunkedArray, where: str, allowed: str = "numbers") -> npt.NDArray[np.float32]:
    """A column as float32; raises UserError for values that are not finite numbers."""
    if pa.types.is_null(column.type):
        _check_present(column, len(column), where)
    if not _is_any(NUMBERS, column):
        raise UserError(f"{where} contains {_kind(column)}; allowed: {allowed}; convert it, or use another column")
    values: npt.NDArray[np.float64] = column.to_numpy().astype(np.float64)  # a missing number becomes NaN
    _check_present(column, int(np.isnan(values).sum()), where)
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise UserError(
            f"{where} contains {values[infinite[0]]:g} in row {infinite[0] + 1}, but fp32 numbers are at most 3.4e+38; "
            f"change such values ({len(infinite)} rows), or use another column"
        )
    return numbers


def _check_present(column: pa.ChunkedArray, missing: int, where: str) -> None:
    if missing:
        raise UserError(
            f"{where} has {missing} of {len(column)} rows without a value; fill or remove them, or use another column"
        )


def _kind(column: pa.ChunkedArray) -> str:
    if not _is_any(TEXTS, column):
        return str(column.type)
    texts = list(enumerate(column.to_pylist(), 1))
    no_numbers = ((row, text) for row, text in texts if text and not text.lstrip("-").replace(".", "", 1).isdigit())
    row, text = next(no_numbers, texts[0])
    return f"text, {shown_value(text)} in row {row}"

"""A user's own table as samples: rows of numbers, and what to predict from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import torch
from torch.utils.data import TensorDataset

from crossover.config.models import Table
from crossover.errors import UserError, shown_path, shown_value

NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


def samples_of(table: Table) -> TensorDataset:
    """Inputs, float32 (rows, columns), and targets (rows): float32, or int64 for whole numbers, booleans and texts.

    Raises UserError for a column of other values, and for missing ones.
    """
    path, names = Path(table.file), [*table.inputs, table.targets]
    try:
        if path.suffix == ".parquet":
            read = pyarrow.parquet.read_table(path, columns=names)
        else:
            read = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(include_columns=names))
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{shown_path(path)}: cannot be read ({first}); mend the file") from None
    columns = {name: read.column(name) for name in names}
    for name, column in columns.items():
        number = any(
            is_kind(column.type) for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        )
        if not number and not (name == table.targets and _is_text(column)):
            allowed = "numbers or texts" if name == table.targets else "numbers"
            raise UserError(f"{shown_path(path)}: column {shown_value(name)} holds {column.type}; allowed: {allowed}")
        if column.null_count:
            raise UserError(
                f"{shown_path(path)}: column {shown_value(name)} has {column.null_count} rows without a value; "
                "fill them, or leave the column out"
            )
    inputs = np.stack([columns[name].to_numpy().astype(np.float32) for name in table.inputs], axis=1)
    targets = columns[table.targets]
    numbers = np.unique(targets.to_numpy(), return_inverse=True)[1] if _is_text(targets) else targets.to_numpy()
    kind = np.float32 if pa.types.is_floating(targets.type) else np.int64
    return TensorDataset(torch.from_numpy(inputs), torch.from_numpy(numbers.astype(kind)))


def _is_text(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))

"""Writes the file of one row, of a trial or a training. Imports neither torch nor pandas, and pyarrow only to write."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from crossover.tables.columns import arrow_schema


def write_record(record: Any, path: Path) -> None:
    """Write a record as the one row of `path`, not atomically.

    The row goes through Arrow's JSON reader, because every other way from Python values to Arrow imports pandas.
    """
    import pyarrow.json
    import pyarrow.parquet

    schema = arrow_schema(type(record))
    text = json.dumps(vars(record), allow_nan=False).encode()
    table = pyarrow.json.read_json(
        io.BytesIO(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    single = {"use_dictionary": False, "write_statistics": False}  # for one row they only take time to read
    pyarrow.parquet.write_table(table.cast(schema), path, **single)

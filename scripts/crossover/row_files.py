"""The file of one row, as a trial or a training writes it.

Imports neither torch nor pandas, and pyarrow only to write.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from crossover.records import arrow_schema

NULL_COLUMNS = "null_columns"
"""The key under which such a file names the columns that it leaves out, with spaces between them."""


def write_record(record: Any, path: Path) -> None:
    """Write a record as the one row of `path`; the caller sees to it that a killed process leaves nothing behind.

    Thousands of such files are read: each has the columns that are not null, names the others, and leaves it to the
    table of all rows to say what they mean. The row goes through Arrow's JSON reader, since every other way from Python
    values to Arrow imports pandas.
    """
    import pyarrow.json
    import pyarrow.parquet

    values = {name: value for name, value in vars(record).items() if value is not None}
    schema = pyarrow.schema([(f.name, f.type) for f in arrow_schema(type(record)) if f.name in values])
    text = json.dumps(values, allow_nan=False).encode()
    table = pyarrow.json.read_json(
        io.BytesIO(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    nulls = " ".join(name for name in vars(record) if name not in values)
    plain = {"use_dictionary": False, "write_statistics": False, "store_schema": False}  # they help with many rows only
    with pyarrow.parquet.ParquetWriter(path, table.schema, **plain) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({NULL_COLUMNS: nulls})

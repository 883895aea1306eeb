"""Read the user's table, a CSV or Parquet file, with pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.config.models import Table, find_file
from crossover.errors import UserError, allowed_names, did_you_mean, shown_path, shown_text, shown_value

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
PARQUET_MAGIC = b"PAR1"
DELIMITERS = (",", ";", "\t", "|")
"""Possible delimiters; the one that gives the header the most columns is used."""
MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>")
"""Unquoted CSV fields that mean a missing value."""
NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)
"""A number; if all names of a header match it, the header is missing."""
INDEX = re.compile(r"(Unnamed: [\d.]+|__index_level_\d+__)?")
"""Names of index columns: an empty name, pandas' replacement for an empty name, and pandas' names for an index."""
AMBIGUOUS = r"^[+-]?([0-9]{1,3}|[1-9][0-9]{0,2},[0-9]{3})$"
"""A number of up to three digits, or one whose comma may be a thousands or a decimal separator."""
BLOCK_BYTES = 1 << 26
"""Size of the blocks in which a CSV file is read; a row must fit into one."""
MOST_NAMED = 10
MOST_CHARACTERS = 60_000
"""Maximum total length of the names of inputs. They form one command-line argument, which Linux limits to 128 KiB."""


@dataclass(frozen=True)
class _Columns:
    names: Sequence[str]
    index: frozenset[str]
    """The names of index columns."""
    encoding: str = "utf-8"
    delimiter: str = ","


def read_table(data: Mapping[str, Any], folder: Path, where: str) -> Table:
    """The table that the keys `file`, `targets` and optionally `inputs` describe.

    A relative path is searched for in `folder`, then in the working directory. Raises UserError.
    """
    file = find_file(data["file"], [folder, Path()], f"{where}: file: there is", "a CSV or Parquet file")
    with _explained(f"{where}: file: {data['file']}"):
        columns = _columns_of(file)
    targets, inputs = data["targets"], tuple(data.get("inputs") or ())
    for key, name in (("targets", targets), *(("inputs", name) for name in inputs)):
        if name not in columns.names:
            shown = f"{where}: {key}: {data['file']} has no column {shown_value(name)}"
            raise UserError(f"{shown}; {_allowed(name, columns.names)}")
    if targets in inputs:
        raise UserError(f"{where}: inputs: {shown_value(targets)} is the column to predict; leave it out")
    if len(json.dumps(inputs)) > MOST_CHARACTERS:
        raise UserError(
            f"{where}: inputs: {len(inputs)} names have more than {MOST_CHARACTERS} characters; leave `inputs` out, "
            "which takes all columns, and the other columns out of the file"
        )
    wanted = inputs or _others(columns, targets)
    if not wanted:
        raise UserError(f"{where}: inputs: {data['file']} has no column other than the targets; add one")
    times = Counter(columns.names)
    if twice := [name for name in (targets, *wanted) if times[name] > 1]:
        shown = f"{where}: file: {data['file']} has column {shown_value(twice[0])} more than once"
        raise UserError(f"{shown}; rename or remove one")
    return Table(str(file), targets, inputs)


def inputs_of(table: Table) -> Sequence[str]:
    """The columns to predict from: the table's `inputs`, or else all except the targets and index columns."""
    return table.inputs or _others(_columns_of(Path(table.file)), table.targets)


def left_out(table: Table) -> str | None:
    """A note on the columns left out as an index; None if there are none."""
    if table.inputs:
        return None
    columns = _columns_of(Path(table.file))
    names = [name for name in dict.fromkeys(columns.names) if name in columns.index and name != table.targets]
    if not names:
        return None
    shown = ", ".join(shown_value(name) if name else "without a name" for name in names)
    return (
        f"{shown_path(Path(table.file))}: columns left out as an index of the rows: {shown}; `inputs` may name others"
    )


def read_columns(file: Path, names: Sequence[str]) -> pa.Table:
    """Read columns of a file by name; raises UserError if it cannot be read, or if decimal commas are ambiguous."""
    import pyarrow.parquet

    with _explained(shown_path(file)):
        if _is_parquet(file):
            return pyarrow.parquet.read_table(file, columns=list(names))
        columns = _columns_of(file)
        table = _read_csv(file, columns, names, ".")
        if columns.delimiter == "," or not _text_columns(table):
            return table
        other = _read_csv(file, columns, names, ",")  # spreadsheets use semicolons where the comma is decimal
    numbers = _text_columns(table) - _text_columns(other)
    _check_decimal(table.select(sorted(numbers)), shown_path(file))
    return other if len(_text_columns(other)) < len(_text_columns(table)) else table


def _columns_of(file: Path) -> _Columns:
    import pyarrow.parquet

    if _is_parquet(file):
        schema = pyarrow.parquet.read_schema(file)
        of_pandas = (schema.pandas_metadata or {}).get("index_columns", ())
        index = {name for name in of_pandas if isinstance(name, str)}  # pandas' range index is not stored as a column
        return _Columns(schema.names, frozenset(index | set(filter(INDEX.fullmatch, schema.names))))
    with _opened(file) as stream:
        begins = stream.read(2)
    encoding = "utf-16" if begins in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"
    headers = {delimiter: _header(file, encoding, delimiter) for delimiter in DELIMITERS}
    delimiter = max(headers, key=lambda text: len(headers[text]))
    names = headers[delimiter]
    if not names:
        raise ValueError("no line with column names")
    return _Columns(names, frozenset(filter(INDEX.fullmatch, names)), encoding, delimiter)


def _header(file: Path, encoding: str, delimiter: str) -> list[str]:
    with _opened(file) as stream, suppress(csv.Error):
        text = io.TextIOWrapper(stream, "utf-8-sig" if encoding == "utf-8" else encoding, newline="")
        return next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    return []


def _opened(file: Path) -> Any:
    import pyarrow as pa

    return pa.input_stream(str(file), compression="detect")


def _read_csv(
    file: Path, columns: _Columns, names: Sequence[str], decimal_point: str, threads: bool = True
) -> pa.Table:
    import pyarrow.csv

    try:
        return pyarrow.csv.read_csv(
            str(file),
            pyarrow.csv.ReadOptions(use_threads=threads, block_size=BLOCK_BYTES, encoding=columns.encoding),
            pyarrow.csv.ParseOptions(delimiter=columns.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=list(names),
                decimal_point=decimal_point,
                null_values=list(MISSING),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pyarrow.ArrowInvalid:
        if not threads:
            raise
        return _read_csv(file, columns, names, decimal_point, threads=False)  # the error then names the row


def _text_columns(table: pa.Table) -> set[str]:
    import pyarrow as pa

    return {field.name for field in table.schema if pa.types.is_string(field.type)}


def _check_decimal(texts: pa.Table, shown: str) -> None:
    import pyarrow.compute

    for name, column in zip(texts.column_names, texts.columns, strict=True):
        if pyarrow.compute.all(pyarrow.compute.match_substring_regex(column, AMBIGUOUS)).as_py():
            first = shown_value(column.drop_null()[0].as_py())
            raise UserError(
                f"{shown}: column {shown_value(name)} has {first}, and its commas may be thousands or decimal "
                "separators; write the numbers without commas"
            )


def _is_parquet(file: Path) -> bool:
    if file.suffix.lower() in PARQUET_SUFFIXES:
        return True
    with file.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _others(columns: _Columns, targets: str) -> list[str]:
    return [name for name in columns.names if name != targets and name not in columns.index]


def _allowed(name: str, columns: Sequence[str]) -> str:
    if not name.isdecimal() and all(NUMBER.fullmatch(column) for column in columns):
        return "its first line holds numbers; begin it with a line that names the columns"
    if len(columns) <= MOST_NAMED:
        return allowed_names(name, columns)
    return f"it has {len(columns)}: {', '.join(columns[:MOST_NAMED])}, ...{did_you_mean(name, columns, 1)}"


@contextmanager
def _explained(shown: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except UnicodeError:
        raise UserError(f"{shown} is not text in UTF-8 or UTF-16; save it as CSV in UTF-8, or as Parquet") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        first = shown_text(str(error).partition("\n")[0].rstrip("."))
        raise UserError(f"{shown} cannot be read ({first}); give a CSV or Parquet file") from None

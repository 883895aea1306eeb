"""A user's own table: a CSV or Parquet file, read with pyarrow."""

from __future__ import annotations

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
"""Possible delimiters; the first of those that give the header the most columns is taken."""
MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>")
"""Fields of a CSV file, outside of quotes, that hold no value."""
NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)
"""A value where a column's name is expected."""
INDEX = re.compile(r"(Unnamed: [\d.]+|__index_level_\d+__)?")
"""Names of columns that number the rows: none, what pandas makes of none, and what it calls an index."""
BLOCK_BYTES = 1 << 26
"""A row of a CSV file must fit into one block."""
MOST_NAMED = 10
"""Columns of a table up to which a message lists them all."""
MOST_CHARACTERS = 60_000
"""Maximum length of the names of inputs together: an argument of a command is limited to 128 KiB by Linux."""


@dataclass(frozen=True)
class _Columns:
    """The columns of a file."""

    names: Sequence[str]
    index: frozenset[str]
    """The names of those that number or name the rows."""
    delimiter: str = ","

    def numbers(self, name: str) -> str:
        """The places of all columns of that name, counted from 1: "1 and 3"."""
        return " and ".join(str(number) for number, other in enumerate(self.names, 1) if other == name)


def read_table(given: Mapping[str, Any], folder: Path, where: str) -> Table:
    """The table of `file`, `targets` and perhaps `inputs`; a relative file is looked for as a model's.

    Raises UserError, which begins with `where`, if the file has no such columns.
    """
    file = find_file(given["file"], [folder, Path()], f"{where}: file: there is", "a CSV or Parquet file")
    with _explained(f"{where}: file: {given['file']}"):
        columns = _columns_of(file)
    targets, inputs = given["targets"], tuple(given.get("inputs") or ())
    for key, names in (("targets", [targets]), ("inputs", inputs)):
        for name in names:
            if name not in columns.names:
                shown = f"{where}: {key}: {given['file']} has no column {shown_value(name)}"
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
        raise UserError(f"{where}: inputs: {given['file']} has no column beside the targets; add one")
    times = Counter(columns.names)
    for name in (targets, *wanted):
        if times[name] > 1:
            raise UserError(
                f"{where}: file: {given['file']} has column {shown_value(name)} more than once (columns "
                f"{columns.numbers(name)}); rename or remove one"
            )
    return Table(str(file), targets, inputs)


def inputs_of(table: Table) -> Sequence[str]:
    """The columns to predict from: those that are named, or else all others but an index."""
    return table.inputs or _others(_columns_of(Path(table.file)), table.targets)


def left_out(table: Table) -> str | None:
    """A sentence that names the columns taken for an index; None if there are none."""
    if table.inputs:
        return None
    columns = _columns_of(Path(table.file))
    names = [name for name in dict.fromkeys(columns.names) if name in columns.index and name != table.targets]
    if not names:
        return None
    shown = ", ".join(shown_value(name) if name else f"without a name ({columns.numbers(name)})" for name in names)
    return (
        f"{shown_path(Path(table.file))}: columns left out as an index of the rows: {shown}; `inputs` may name others"
    )


def read_columns(file: Path, names: Sequence[str]) -> pa.Table:
    """Columns of a file. Raises UserError if it cannot be read."""
    import pyarrow.parquet

    with _explained(shown_path(file)):
        if _is_parquet(file):
            return pyarrow.parquet.read_table(file, columns=list(names))
        return _read_csv(file, _columns_of(file).delimiter, names)


def _columns_of(file: Path) -> _Columns:
    import pyarrow.parquet

    if _is_parquet(file):
        schema = pyarrow.parquet.read_schema(file)
        of_pandas = (schema.pandas_metadata or {}).get("index_columns", ())
        index = {name for name in of_pandas if isinstance(name, str)}  # a range of numbers is no column
        return _Columns(schema.names, frozenset(index | set(filter(INDEX.fullmatch, schema.names))))
    headers = {delimiter: _header(file, delimiter) for delimiter in DELIMITERS}
    delimiter = max(headers, key=lambda text: len(headers[text]))
    names = headers[delimiter]
    if not names:
        raise ValueError("no line names columns")
    return _Columns(names, frozenset(filter(INDEX.fullmatch, names)), delimiter)


def _header(file: Path, delimiter: str) -> list[str]:
    """The names in the first line that is not empty; none where a field is longer than the standard library reads."""
    import pyarrow as pa

    with pa.input_stream(str(file), compression="detect") as stream, suppress(csv.Error):
        text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        return next(filter(None, csv.reader(text, delimiter=delimiter)), [])
    return []


def _read_csv(file: Path, delimiter: str, names: Sequence[str], threads: bool = True) -> pa.Table:
    import pyarrow.csv

    try:
        return pyarrow.csv.read_csv(
            str(file),
            pyarrow.csv.ReadOptions(use_threads=threads, block_size=BLOCK_BYTES),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=list(names),
                null_values=list(MISSING),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pyarrow.ArrowInvalid:
        if not threads:
            raise
        return _read_csv(file, delimiter, names, threads=False)  # then the error names the row


def _is_parquet(file: Path) -> bool:
    if file.suffix.lower() in PARQUET_SUFFIXES:
        return True
    with file.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _others(columns: _Columns, targets: str) -> list[str]:
    return [name for name in columns.names if name != targets and name not in columns.index]


def _allowed(name: str, columns: Sequence[str]) -> str:
    """The columns of a table, or some of many, and the closest one."""
    if not name.isdecimal() and all(NUMBER.fullmatch(column) for column in columns):
        return "its first line holds numbers; begin it with a line that names the columns"
    if len(columns) <= MOST_NAMED:
        return allowed_names(name, columns)
    return f"it has {len(columns)}: {', '.join(columns[:MOST_NAMED])}, ...{did_you_mean(name, columns, 1)}"


@contextmanager
def _explained(shown: str) -> Iterator[None]:
    """Raise what reading a file may raise as one line."""
    import pyarrow as pa

    try:
        yield
    except UnicodeError:
        raise UserError(f"{shown} is no text in UTF-8; save it as CSV in UTF-8, or as Parquet") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        first = shown_text(str(error).partition("\n")[0].rstrip("."))
        raise UserError(f"{shown} cannot be read ({first}); give a CSV or Parquet file") from None

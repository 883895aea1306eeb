"""Columns of a table, as named in a study or on the command line."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.config.models import Table
from crossover.config.table_files import inputs_of, left_out, read_table
from user_errors import error_line

FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, 1.5, 2.5], "label": ["x", "y", "x"]})


@pytest.fixture
def given(folder: Any) -> dict[str, Any]:
    (folder.path / "samples.csv").write_text("a,b,label\n1,2.5,yes\n")
    return {"file": "samples.csv", "targets": "label"}


def test_all_other_columns_are_inputs(given: dict[str, Any], folder: Any) -> None:
    table = read_table(given, Path(), "here")
    assert table == Table(str(folder.path / "samples.csv"), "label")
    assert inputs_of(table) == ["a", "b"]
    assert inputs_of(read_table({**given, "inputs": ["b"]}, Path(), "here")) == ("b",)
    assert left_out(table) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": "none.csv"}, "here: file: there is no file none.csv; give a CSV or Parquet file"),
        ({"targets": "lable"}, "here: targets: samples.csv has no column 'lable'; allowed: a, b, label (did"),
        (
            {"file": "headless.csv"},
            "here: targets: headless.csv has no column 'label'; its first line holds numbers; begin",
        ),
        ({"inputs": ["a", "c"]}, "here: inputs: samples.csv has no column 'c'; allowed: a, b, label"),
        ({"inputs": ["a", "label"]}, "here: inputs: 'label' is the column to predict; leave it out"),
        ({"file": "empty.csv"}, "here: file: empty.csv cannot be read (no line with column names); give a CSV"),
        ({"file": "text.parquet"}, "here: file: text.parquet cannot be read (Parquet"),
        ({"file": "one.csv"}, "here: inputs: one.csv has no column other than the targets; add one"),
        ({"file": "twice.csv"}, "here: file: twice.csv has column 'a' more than once; rename"),
        ({"file": "latin.csv"}, "here: file: latin.csv is not text in UTF-8 or UTF-16; save it as CSV in UTF-8"),
        ({"file": "wide.csv", "targets": "g0", "inputs": [f"g{n}" for n in range(1, 9000)]}, "here: inputs: 8999 name"),
        ({"file": "wide.csv"}, "here: targets: wide.csv has no column 'label'; it has 20000: g0, g1, g2, g3, g4"),
    ],
)
def test_an_invalid_table_is_one_line(
    given: dict[str, Any], folder: Any, changes: dict[str, Any], message: str
) -> None:
    texts = {
        "empty.csv": "\n\n",
        "text.parquet": "a,b,label\n1,2,3\n",
        "one.csv": "label\n1\n",
        "headless.csv": "0.5,-1e-3,3\n1,2,4\n",
    }
    texts |= {"twice.csv": "a,label,a\n1,2,3\n", "wide.csv": ",".join(f"g{number}" for number in range(20_000))}
    for name, text in texts.items():
        (folder.path / name).write_text(text)
    (folder.path / "latin.csv").write_bytes("größe,label\n1,2\n".encode("latin-1"))
    assert error_line(lambda: read_table({**given, **changes}, Path(), "here")).startswith(message)


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (lambda path: FRAME.sample(frac=1, random_state=1).to_parquet(path), "'__index_level_0__'"),
        (lambda path: FRAME.assign(key=[7, 9, 8]).set_index("key").to_parquet(path), "'key'"),
        (lambda path: FRAME.to_csv(path), "without a name"),
        (lambda path: FRAME.rename_axis("Unnamed: 0").to_csv(path), "'Unnamed: 0'"),
        (lambda path: path.write_text("a;b;label;;\n1;2;x;;\n"), "without a name"),
    ],
)
def test_index_columns_are_left_out_and_named(tmp_path: Path, write: Callable[[Path], object], named: str) -> None:
    write(tmp_path / "rows")
    table = read_table({"file": "rows", "targets": "label"}, tmp_path, "here")
    assert inputs_of(table) == ["a", "b"]
    assert f"rows: columns left out as an index of the rows: {named}; `inputs` may name others" in str(left_out(table))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_headers_with_any_delimiter_and_encoding_are_read(tmp_path: Path, delimiter: str, encoding: str) -> None:
    text = FRAME.rename(columns={"a": "größe, in m"}).to_csv(index=False, sep=delimiter, lineterminator="\r\n")
    (tmp_path / "rows.csv").write_text(text, encoding=encoding, newline="")
    assert (tmp_path / "rows.csv").read_bytes().startswith(codecs.BOM_UTF8) == (encoding == "utf-8-sig")
    table = read_table({"file": "rows.csv", "targets": "label"}, tmp_path, "here")
    assert inputs_of(table) == ["größe, in m", "b"]

"""A user's table as samples: its classes, its numbers, and columns that are rejected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from crossover.config.models import Table
from crossover.measurement.user.table import TableSamples, samples_of
from user_errors import error_line

COLUMNS = {
    "count": [3, 1, 2],
    "share": [0.5, 0.25, 1.0],
    "passed": [True, False, True],
    "height": [2.5, 4.0, 1.5],
    "floors": [1, 2, 3],
    "kind": ["dog", "cat", "dog"],
    "holed": [1.0, None, 2.0],
    "endless": [1.0, 2.0, float("inf")],
    "day": [date(2020, 1, 1)] * 3,
    "constant": [7.0, 7.0, 7.0],
}


@pytest.fixture(params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / f"samples.{request.param}"
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize(
    ("targets", "expected", "classes"),
    [
        ("kind", torch.tensor([1, 0, 1]), 2),
        ("passed", torch.tensor([1, 0, 1]), 2),
        ("count", torch.tensor([2, 0, 1]), 3),
        ("share", torch.tensor([0.5, 0.25, 1.0]), None),
    ],
)
def test_whole_numbers_booleans_and_texts_become_classes_in_sorted_order(
    file: str, targets: str, expected: torch.Tensor, classes: int | None
) -> None:
    samples = samples_of(Table(file, targets, ("height", "floors", "constant")))
    inputs, numbered = samples.tensors
    assert torch.equal(inputs, torch.tensor([[2.5, 1, 7], [4.0, 2, 7], [1.5, 3, 7]]))
    assert torch.equal(numbered, expected)
    assert numbered.dtype == expected.dtype
    assert (samples.labels and samples.labels.most + 1) == classes


@pytest.mark.parametrize(
    ("targets", "inputs", "message"),
    [
        ("count", ("kind",), "column 'kind' contains text, 'dog' in row 1; allowed: numbers; convert it"),
        ("count", ("holed",), "column 'holed' has 1 of 3 rows without a value; fill or remove them"),
        ("count", ("endless",), "column 'endless' contains inf in row 3, but fp32 numbers are at most 3.4e+38"),
        ("count", ("day",), "column 'day' contains date32[day]; allowed: numbers"),
    ],
)
def test_a_column_that_is_not_numeric_is_one_line(
    file: str, targets: str, inputs: tuple[str, ...], message: str
) -> None:
    assert message in error_line(lambda: samples_of(Table(file, targets, inputs)))


def of_parquet(tmp_path: Path, **columns: Any) -> TableSamples:
    path = tmp_path / "samples.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return samples_of(Table(str(path), "label"))


def test_decimals_categories_and_small_types_are_numbers(tmp_path: Path) -> None:
    samples = of_parquet(
        tmp_path,
        decimals=[Decimal("1.25"), Decimal("2.50")],
        categories=pd.Categorical([8, 9]),
        half=np.array([0.5, 1.5], np.float16),
        byte=np.array([1, 255], np.uint8),
        long=[2**53, 1],
        label=[Decimal(7), Decimal(5)],
    )
    inputs, targets = samples.tensors
    assert inputs.tolist() == [[1.25, 8, 0.5, 1, 2**53], [2.5, 9, 1.5, 255, 1]]
    assert targets.tolist() == [1, 0]


TEXT = "a;b;label\n0.5;1;x\n1.25;2;y\n"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.csv", lambda path: path.write_text(TEXT)),
        ("rows.csv", lambda path: path.write_text(TEXT.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")),
        ("rows.txt", lambda path: path.write_text(TEXT.replace(";", "\t"))),
        ("rows.csv.gz", lambda path: pd.DataFrame({"a": [0.5, 1.25], "b": [1, 2], "label": ["x", "y"]}).to_csv(path)),
        ("rows", lambda path: pd.DataFrame({"a": [0.5, 1.25], "b": [1, 2], "label": ["x", "y"]}).to_parquet(path)),
    ],
)
def test_csv_and_parquet_files_give_the_same_rows(tmp_path: Path, name: str, write: Callable[[Path], object]) -> None:
    write(tmp_path / name)
    inputs, targets = samples_of(Table(str(tmp_path / name), "label")).tensors
    assert inputs.tolist() == [[0.5, 1], [1.25, 2]]
    assert targets.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,label\n", "rows.csv: has columns but no rows"),
        ("a,label\n1,x\n2\n", "rows.csv cannot be read (CSV parse error: Row #3: Expected 2 columns, got 1: 2)"),
        ("a,label\n1,x\n?,y\nNaN,x\n,y\n", "rows.csv: column 'a' has 3 of 4 rows without a value"),
    ],
)
def test_a_csv_file_without_rows_of_numbers_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(text)
    assert error_line(lambda: samples_of(Table(str(tmp_path / "rows.csv"), "label"))).startswith(message)

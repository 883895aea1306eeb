"""Tables of a user's own as samples."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch

from crossover.config.models import Table
from crossover.errors import UserError
from crossover.measurement.own_table import samples_of

COLUMNS = {
    "count": [3, 1, 2],
    "share": [0.5, 0.25, 1.0],
    "passed": [True, False, True],
    "height": [2.5, 4.0, 1.5],
    "floors": [1, 2, 3],
    "kind": ["dog", "cat", "dog"],
    "holed": [1.0, None, 2.0],
}


@pytest.fixture(params=["csv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / f"samples.{request.param}"
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("kind", torch.tensor([1, 0, 1])),
        ("passed", torch.tensor([1, 0, 1])),
        ("count", torch.tensor([3, 1, 2])),
        ("share", torch.tensor([0.5, 0.25, 1.0])),
    ],
)
def test_whole_numbers_booleans_and_texts_are_classes(file: str, targets: str, expected: torch.Tensor) -> None:
    inputs, found = samples_of(Table(file, targets, ("height", "floors"))).tensors
    assert torch.equal(inputs, torch.tensor([[2.5, 1], [4.0, 2], [1.5, 3]]))
    assert torch.equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("targets", "inputs", "message"),
    [
        ("count", ("kind",), "string; allowed: numbers"),
        ("count", ("holed",), "column 'holed' has 1 rows without a value; fill them, or leave the column out"),
        ("holed", ("count",), "column 'holed' has 1 rows without a value"),
        ("count", ("gone",), "gone"),
    ],
)
def test_what_is_no_sample_is_one_line(file: str, targets: str, inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError) as found:
        samples_of(Table(file, targets, inputs))
    assert message in str(found.value)
    assert "\n" not in str(found.value)

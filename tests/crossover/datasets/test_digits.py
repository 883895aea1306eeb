from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from crossover.datasets import MAKERS, is_generated
from crossover.datasets.digits import make_digits


def test_every_image_that_scikit_learn_ships_is_there_once() -> None:
    data = make_digits({"seed": 0})
    assert (data["features"].shape, data["features"].dtype) == ((1797, 64), np.float32)
    assert data["labels"].dtype == np.int64
    pixels, labels = load_digits(return_X_y=True)
    rows = sorted([*map(int, row), label] for row, label in zip(data["features"] * 16, data["labels"], strict=True))
    assert rows == sorted([*map(int, row), label] for row, label in zip(pixels, labels, strict=True))


def test_the_order_is_random_and_the_seeds() -> None:
    """The source's own order begins 0, 1, 2, ... again and again."""
    first, again, other = (make_digits({"seed": seed})["labels"] for seed in (1, 1, 2))
    assert (first == again).all()
    assert 0.05 < (first == other).mean() < 0.15
    assert 0.05 < (first == load_digits().target).mean() < 0.15


@pytest.mark.parametrize(
    ("name", "options", "generated"),
    [
        ("digits", {"seed": 0}, False),
        ("disc", {"points": 10, "seed": 0}, True),
        ("higgs", {"csv": None}, True),
        ("higgs", {"csv": {"signal": "a.csv", "background": "b.csv"}}, False),
        ("mnist", {"folder": None}, True),
        ("mnist", {"folder": "data"}, False),
    ],
)
def test_which_data_are_generated(name: str, options: dict[str, object], generated: bool) -> None:
    assert name in MAKERS
    assert is_generated(name, options) is generated

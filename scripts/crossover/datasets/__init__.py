"""Datasets as NumPy arrays: `features`, whose first dimension counts rows, and `labels`, int64 of shape (rows,)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from crossover.datasets.disc import make_disc
from crossover.datasets.higgs import make_higgs
from crossover.datasets.mnist import make_mnist

MAKERS: dict[str, Callable[[Mapping[str, Any]], dict[str, NDArray[Any]]]] = {
    "disc": make_disc,
    "higgs": make_higgs,
    "mnist": make_mnist,
}
"""How each dataset is made, from its options in the config."""

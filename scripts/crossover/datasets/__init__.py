"""Datasets as NumPy arrays: `features` of shape (rows, ...), and `labels`, int64 of shape (rows,)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from crossover.datasets.digits import make_digits, make_mnist
from crossover.datasets.disc import make_disc
from crossover.datasets.higgs import make_higgs

MAKERS: dict[str, Callable[[Mapping[str, Any]], dict[str, NDArray[Any]]]] = {
    "digits": make_digits,
    "disc": make_disc,
    "higgs": make_higgs,
    "mnist": make_mnist,
}


def is_generated(name: str, options: Mapping[str, Any]) -> bool:
    """Return True if a dataset's rows are generated, False if they are real or the user's."""
    return name in ("disc", "higgs", "mnist") and not (options.get("csv") or options.get("folder"))

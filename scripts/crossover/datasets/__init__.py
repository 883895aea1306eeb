"""Datasets as NumPy arrays: `features`, whose first dimension counts rows, and `labels`, int64 of shape (rows,)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossover.datasets.disc import make_disc
from crossover.datasets.higgs import make_higgs
from crossover.datasets.mnist import make_mnist

Arrays = dict[str, np.ndarray[Any, Any]]

MAKERS: dict[str, Callable[[Mapping[str, Any]], Arrays]] = {"disc": make_disc, "higgs": make_higgs, "mnist": make_mnist}
"""How each dataset is made, from its options in the config."""

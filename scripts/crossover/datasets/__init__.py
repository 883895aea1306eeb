"""Datasets as NumPy arrays: `features`, float32 of shape (rows, 2), and `labels`, int64 of shape (rows,)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossover.datasets.disc import make_disc
from crossover.datasets.higgs import make_higgs

Arrays = dict[str, np.ndarray[Any, Any]]

MAKERS: dict[str, Callable[[Mapping[str, Any]], Arrays]] = {"disc": make_disc, "higgs": make_higgs}
"""How each dataset is made, from its options in the config."""

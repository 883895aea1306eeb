"""Points in the unit square, labelled by a disc (Penny Xu, "When to use GPU for training?", 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

SQUARED_RADIUS = 1 / (2 * math.pi)
"""A quarter of the disc lies in the square, so that about an eighth of the points have label 1."""


def make_disc(options: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Draw `points` points uniformly from [0, 1)^2 with `seed`; points inside the disc have label 1.

    As in the source, features are normalised by the mean and standard deviation of all values together.
    """
    points = np.random.default_rng(options["seed"]).random((options["points"], 2), dtype=np.float32)
    labels = (np.square(points).sum(axis=1) <= SQUARED_RADIUS).astype(np.int64)
    spread = points.std(ddof=1)
    return {"features": (points - points.mean()) / (spread if spread > 0 else 1), "labels": labels}

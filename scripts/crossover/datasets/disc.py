"""Points in the unit square, labelled by a disc (Penny Xu, "When to use GPU for training?", 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

SQUARED_RADIUS = 1 / (2 * math.pi)
"""A quarter of the disc lies in the square, so that an eighth of the points are positive."""


def make_disc(options: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Draw `points` points uniformly in [0, 1)^2 with `seed`; label 1 inside the disc.

    The features are normalised by the mean and standard deviation of all values together, as the source does.
    """
    points = np.random.default_rng(options["seed"]).random((options["points"], 2), dtype=np.float32)
    labels = (np.square(points).sum(axis=1) <= SQUARED_RADIUS).astype(np.int64)
    spread = points.std(ddof=1)
    return {"features": (points - points.mean()) / (spread if spread > 0 else 1), "labels": labels}

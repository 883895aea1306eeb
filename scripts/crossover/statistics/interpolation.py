"""Log-log interpolation, between what a line counts its sizes in."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


class Interpolation:
    """Log-log interpolation from x to y, exact at the points themselves; None stays None."""

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        points = pd.DataFrame({"x": np.asarray(x, float), "y": np.asarray(y, float)}).dropna().drop_duplicates("x")
        points = points.sort_values("x")
        self.known: dict[float, float] = dict(zip(points["x"].tolist(), points["y"].tolist(), strict=True))
        self.log_x, self.log_y = np.log(points["x"].to_numpy()), np.log(points["y"].to_numpy())

    def __call__(self, x: float | None) -> float | None:
        if x is None or len(self.log_x) == 0:
            return None
        if x in self.known:
            return self.known[x]
        return float(np.exp(np.interp(np.log(x), self.log_x, self.log_y)))

"""The cost model beside a line of a figure: thin and dotted, a guide for the eye, ending where the measuring ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from crossover.figures.views import StudyView
from crossover.statistics.cost_models import models_of
from crossover.statistics.interpolation import Interpolation

POINTS = 100
DOTS = (0, (1, 2))

Floats = np.ndarray[Any, np.dtype[np.float64]]


def guide_of(
    view: StudyView, line: Mapping[str, Any], cells: pd.DataFrame, scale: float
) -> tuple[Floats, Floats] | None:
    """Places on the x axis and times by the cost model of a line's device, `scale` steps each; None without a model.

    `cells` are those of one device, with columns device, size and x.
    """
    if view.cost_models is None:
        return None
    model = models_of(view.cost_models, line).get(str(cells["device"].iloc[0]))
    if model is None:
        return None
    sizes = np.geomspace(model.smallest_size, model.largest_size, POINTS)
    to_x = Interpolation(cells["size"], cells["x"])
    return np.array([to_x(size) for size in sizes], float), np.array([model.seconds(size) * scale for size in sizes])


def draw_guide(axes: Axes, guide: tuple[Floats, Floats] | None, colour: str) -> None:
    """Draw a guide, if there is one, behind the measured line."""
    if guide is not None:
        axes.plot(*guide, color=colour, linestyle=DOTS, linewidth=1, alpha=0.8, zorder=2)

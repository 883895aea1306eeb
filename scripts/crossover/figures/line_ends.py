"""The names of devices at the ends of their lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from crossover.figures.curves import Floats, Tag, px_per_pt, spread
from crossover.figures.style import DEVICE_WORDS, LABEL_BOX, short_name

FONT_PT = 10


def device_end(x: Floats, y: Floats, device: str, names: pd.Series, colour: str) -> Tag:
    """A device's name on two lines, so that it takes little of the figure's width."""
    name = names.dropna().iloc[0] if names.notna().any() else ""
    return Tag(f"{DEVICE_WORDS[device]}\n{short_name(name)}".strip(), colour, (float(x[-1]), float(y[-1])))


def write_ends(axes: Axes, ends: Sequence[Tag]) -> None:
    """Write the words right of their points, moved up or down where they would cover each other.

    The axes' place in the figure, its limits and what else it shows must be final.
    """
    per_pt = px_per_pt(axes)
    placed = [(end, end.point) for end in ends if end.point]
    heights = [1.3 * FONT_PT * per_pt * (end.text.count("\n") + 1) for end, _ in placed]
    wanted = [float(axes.transData.transform(point)[1]) for _, point in placed]
    for (end, point), own, place in zip(placed, wanted, spread(wanted, heights, -np.inf, np.inf), strict=True):
        axes.annotate(
            end.text,
            point,
            (7, (place - own) / per_pt),
            textcoords="offset points",
            color=end.colour,
            va="center",
            fontsize=FONT_PT,
            bbox=LABEL_BOX,
        )

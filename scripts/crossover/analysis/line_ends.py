"""The names of devices at the ends of their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from crossover.analysis.curves import POINTS_PER_IN, Floats, spread
from crossover.analysis.style import DEVICE_WORDS, LABEL_BOX, short_name

FONT_PT = 10


@dataclass(frozen=True)
class LineEnd:
    """What stands at the end of a line, and its last point."""

    text: str
    colour: str
    x: float
    y: float


def device_end(x: Floats, y: Floats, device: str, names: pd.Series, colour: str) -> LineEnd:
    """A device's name on two lines, so that it takes little of the figure's width."""
    name = names.dropna().iloc[0] if names.notna().any() else ""
    return LineEnd(f"{DEVICE_WORDS[device]}\n{short_name(name)}".strip(), colour, float(x[-1]), float(y[-1]))


def write_ends(axes: Axes, ends: Sequence[LineEnd]) -> None:
    """Write the words right of their points, moved up or down where they would cover each other.

    The axes' place in the figure, its limits and what else it shows must be final.
    """
    per_pt = axes.get_figure(root=True).dpi / POINTS_PER_IN  # type: ignore[union-attr]
    heights = [1.3 * FONT_PT * per_pt * (end.text.count("\n") + 1) for end in ends]
    wanted = [float(axes.transData.transform((end.x, end.y))[1]) for end in ends]
    for end, own, place in zip(ends, wanted, spread(wanted, heights, -np.inf, np.inf), strict=True):
        axes.annotate(
            end.text,
            (end.x, end.y),
            (7, (place - own) / per_pt),
            textcoords="offset points",
            color=end.colour,
            va="center",
            fontsize=FONT_PT,
            bbox=LABEL_BOX,
        )

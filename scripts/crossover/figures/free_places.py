"""Words beside a line, where they cover as little as possible of what a panel shows."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from crossover.figures.curves import Floats, px_per_pt
from crossover.figures.style import LABEL_BOX

GAP_PT = 8
"""From a point to the words above or below it."""

Place = tuple[tuple[float, float], str, bool]
"""A point, the side of the words that is there, and whether they stand above it."""

MARGIN_PT = 3
"""Between the words and what they should not cover: a marker is about twice as large."""

SAMPLES = 40
"""Places of a line, from one of its points to the next, that words should not cover."""


def write_beside(axes: Axes, text: str, x: Floats, y: Floats, colour: str, size: float = 9) -> None:
    """Write above or below one of a line's points, beginning or ending there: the first such place that is freest.

    The axes' place in the figure, its limits and what else it shows must be final.
    """
    shown, panel = _shown(axes), axes.get_window_extent()
    margin = MARGIN_PT * px_per_pt(axes)
    others = [other.get_window_extent() for other in axes.texts]

    def write(place: Place) -> Annotation:
        point, side, up = place
        return axes.annotate(
            text,
            point,
            (0, GAP_PT if up else -GAP_PT),
            textcoords="offset points",
            color=colour,
            ha=side,
            va="bottom" if up else "top",
            fontsize=size,
            bbox=LABEL_BOX,
        )

    def covered(place: Place) -> float:
        words = write(place)
        box = words.get_window_extent().padded(margin)
        words.remove()
        return _covered(box, shown, others, panel)

    points = zip(x.tolist(), y.tolist(), strict=True)
    write(min(product(points, ("left", "right"), (True, False)), key=covered))


def _covered(box: Bbox, shown: Floats, others: list[Bbox], panel: Bbox) -> float:
    """How much a box covers; more than any number of places where it covers words or leaves the panel."""
    inside = np.all((shown > box.min) & (shown < box.max), axis=1)
    outside = bool(np.any(box.min < panel.min) or np.any(box.max > panel.max))
    return int(inside.sum()) + 1e6 * (outside + any(box.overlaps(other) for other in others))


def _shown(axes: Axes) -> Floats:
    """Places on the screen that lines pass and where dots lie, one pair a row."""
    places = []
    for line in axes.lines:
        ends = line.get_transform().transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        steps = np.linspace(0, 1, SAMPLES)[:, None]
        places += [first + steps * (last - first) for first, last in pairwise(ends)]
        places.append(ends)
    for dots in axes.collections:
        if isinstance(dots, PathCollection):
            places.append(axes.transData.transform(np.asarray(dots.get_offsets())))
    return np.concatenate(places) if places else np.empty((0, 2))

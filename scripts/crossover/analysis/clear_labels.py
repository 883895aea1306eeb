"""Names of lines, each beside the one of its points where the fewest lines and words run through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from crossover.analysis.style import LABEL_BOX

DISTANCE_PT = 7
"""From a point to its label, so that the label keeps clear of the point's marker."""
AIR_PX = 3
"""Room around a label that no line may run through."""
SIDES = tuple(product(("left", "center", "right"), (("bottom", DISTANCE_PT), ("top", -DISTANCE_PT))))
"""How a label stands over or under its point, the most wanted first."""


@dataclass(frozen=True)
class Label:
    """The name of a line with its points, in data coordinates, the most wanted first."""

    text: str
    points: Sequence[tuple[float, float]]
    colour: str


def write_clear(axes: Axes, labels: Sequence[Label], size: float = 9) -> None:
    """Write the labels; all else of the panel must be drawn, its limits final and its figure laid out."""
    lines = [line.get_transform().transform_path(line.get_path()) for line in axes.lines]
    for label in labels:
        words = [text.get_window_extent() for text in axes.texts]
        written = axes.annotate(
            label.text,
            label.points[0],
            (0, DISTANCE_PT),
            textcoords="offset points",
            color=label.colour,
            fontsize=size,
            bbox=LABEL_BOX,
            zorder=5,
        )
        written.set_in_layout(False)
        places = list(product(label.points, SIDES))
        costs = [_cost(axes, _put(written, *place), lines, words) for place in places]
        _put(written, *places[costs.index(min(costs))])


def _put(written: Annotation, point: tuple[float, float], side: tuple[str, tuple[str, float]]) -> Bbox:
    """Move a label beside a point; gives the room that it then takes, in pixels."""
    across, (up, distance_pt) = side
    written.xy = point
    written.set_position((0, distance_pt))
    written.set_horizontalalignment(across)  # type: ignore[arg-type]
    written.set_verticalalignment(up)  # type: ignore[arg-type]
    return written.get_window_extent().padded(AIR_PX)


def _cost(axes: Axes, room: Bbox, lines: Sequence[Path], words: Sequence[Bbox]) -> int:
    """How many lines and words run through the room; any is better than to leave the panel."""
    inside = axes.bbox.x0 <= room.x0 and room.x1 <= axes.bbox.x1 and axes.bbox.y0 <= room.y0 and room.y1 <= axes.bbox.y1
    through = sum(line.intersects_bbox(room, filled=False) for line in lines)
    return through + sum(room.overlaps(other) for other in words) + (0 if inside else len(lines) + len(words) + 1)

"""Several lines in one panel, each told apart by colour, dashes and marker, and named at the panel's right side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from crossover.answers.naming import varying
from crossover.figures.style import LABEL_BOX, PALETTE, PUBLISHED_COLOUR, ink, side_look

DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "P", "X", "D")
POINTS_PER_IN = 72

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Look:
    """How a line is told apart."""

    colour: str
    dashes: str = "-"
    marker: str = "o"


@dataclass(frozen=True)
class Tag:
    """Words for a point, written in the column right of the panel; without a point they come last in it."""

    text: str
    colour: str = PUBLISHED_COLOUR
    point: tuple[float, float] | None = None


@dataclass(frozen=True)
class Looks:
    """The looks of a table's lines: what varies first has the colours, the next the dashes, the last the markers."""

    ranks: Mapping[str, Mapping[Any, int]]

    def of(self, row: Mapping[str, Any]) -> Look:
        """The look of a row's line; where no axis varies it has the device's colour."""
        places = [ranks[row[axis]] for axis, ranks in self.ranks.items()]
        scales: Sequence[Sequence[str]] = (PALETTE, DASHES, MARKERS)
        chosen = [scale[place % len(scale)] for scale, place in zip(scales, places, strict=False)]
        return Look(*chosen) if chosen else Look(*side_look(row["device"]))


def looks_of(cells: pd.DataFrame, axes: Sequence[str]) -> Looks:
    """Looks by those of the axes that vary, in the order in which their values come."""
    varied = varying(cells, axes)
    return Looks({axis: {value: rank for rank, value in enumerate(cells[axis].unique())} for axis in varied})


def draw_hollow(
    axes: Axes, x: Floats, y: Floats, refined: Collection[float], marker: str, colour: str, size: float = 4
) -> None:
    """Make the markers of those points hollow whose x refinement added."""
    hollow = np.isin(x, list(refined))
    if hollow.any():
        axes.plot(x[hollow], y[hollow], marker, color=colour, markerfacecolor="white", markersize=size, zorder=3.5)


def draw_band(axes: Axes, x: Floats, low: Floats, high: Floats, colour: str, alpha: float) -> None:
    """Shade the intervals of a line's points; NaN where a point has none, and a bar where its neighbours have none."""
    known = np.concatenate([[False], ~np.isnan(low), [False]])
    if (known[1:] & known[:-1]).any():
        axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    if alone.any():
        axes.vlines(x[alone], low[alone], high[alone], color=colour, alpha=0.5, linewidth=2)


def px_per_pt(axes: Axes) -> float:
    """Pixels that a point, a 72nd of an inch, takes in the figure of a panel."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.dpi / POINTS_PER_IN


def write_tags(axes: Axes, tags: Sequence[Tag], size: float = 9) -> None:
    """Write the tags one below the other right of the panel, each as near to its point's height as the others allow.

    The axes' limits must be final; a thin line leads from the point to its tag.
    """
    height = axes.get_window_extent().height / px_per_pt(axes)
    to_share = axes.transAxes.inverted()
    wanted = [float(to_share.transform(axes.transData.transform(tag.point))[1]) if tag.point else -1.0 for tag in tags]
    needed = [1.25 * size * (tag.text.count("\n") + 1) / height for tag in tags]
    for tag, place in zip(tags, spread(wanted, needed), strict=True):
        at = (1.05, place)
        if tag.point:
            axes.annotate("", tag.point, at, textcoords="axes fraction", arrowprops=_leader(tag.colour), zorder=1)
        axes.annotate(
            tag.text,
            at,
            (3, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=ink(tag.colour),
            va="center",
            fontsize=size,
            bbox=LABEL_BOX,
        )


def _leader(colour: str) -> dict[str, Any]:
    return {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6, "shrinkA": 0, "shrinkB": 4}


def spread(wanted: Sequence[float], heights: Sequence[float], low: float = 0.0, high: float = 1.0) -> list[float]:
    """Centres for labels of the given heights, none upon another, near to where they are wanted, from `low` to `high`.

    Labels that would overlap are stacked around the mean of where they want to be, in the order of their wishes. Where
    all together are higher than the space, they leave it at both ends alike.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    stacks: list[tuple[list[int], float, float]] = []
    for index in order:
        members, height = [index], heights[index]
        centre = _within(wanted[index], height, low, high)
        while stacks and stacks[-1][1] + stacks[-1][2] / 2 > centre - height / 2:
            below, _, below_height = stacks.pop()
            members, height = [*below, *members], below_height + height
            centre = _within(sum(wanted[member] for member in members) / len(members), height, low, high)
        stacks.append((members, centre, height))
    places = [0.0] * len(wanted)
    for members, centre, height in stacks:
        edge = centre - height / 2
        for member in members:
            places[member] = edge + heights[member] / 2
            edge += heights[member]
    return places


def _within(centre: float, height: float, low: float, high: float) -> float:
    if height > high - low:
        return (low + high) / 2
    return min(max(centre, low + height / 2), high - height / 2)

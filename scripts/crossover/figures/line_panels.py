"""Figures of many lines: panels one below the other, and every line named at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from crossover.figures.curves import Look, Tag, draw_band, draw_hollow, write_tags
from crossover.figures.guides import draw_guide
from crossover.figures.log_ticks import tick_values
from crossover.figures.panels import blank_figure, keep_in_view, stacked_panels, tick_counts
from crossover.figures.status_marks import StatusMark, draw_status_marks, make_room
from crossover.figures.style import CROSSOVER_COLOUR, PUBLISHED_COLOUR

MOST_MARKERS = 30
"""About as many markers of a line stay apart; with more points the line passes through all, and some have markers."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Line:
    """Measured points from left to right, and the ends of their 95 % intervals; NaN where there is none."""

    text: str
    """Its name, and what else is to be said of it on lines of their own."""
    look: Look
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    best: int | None = None
    """The point that has a ring."""
    square: tuple[float, float] | None = None
    """A point apart from the line: a hollow square that a thin line joins to the line's nearest point."""
    guide: tuple[Floats, Floats] | None = None
    """Points of the cost model, left to right."""
    refined: frozenset[float] = frozenset()
    """The x of points that refinement added; these are hollow."""
    marks: Sequence[StatusMark] = ()
    """Sizes that did not end well."""


@dataclass(frozen=True)
class LinePanel:
    """Lines that share a panel, and published points among them."""

    title: str
    lines: Sequence[Line]
    published: Sequence[Tag] = field(default=())
    y_label: str = ""
    """What this panel shows, where it is not what the others show."""
    y_ticks: Formatter | None = None

    @property
    def marks(self) -> list[StatusMark]:
        """How sizes of its lines ended."""
        return [mark for line in self.lines for mark in line.marks]

    @property
    def tags(self) -> list[Tag]:
        """The words beside the panel."""
        own = [
            Tag(line.text, line.look.colour, (line.x[-1], line.y[-1]) if len(line.x) else None) for line in self.lines
        ]
        return [*own, *self.published]


NOTHING_TO_DRAW = "Nothing was measured of what this figure compares."


def plot_line_panels(
    title: str,
    panels: Sequence[LinePanel],
    x_label: str,
    y_label: str,
    y_ticks: Formatter,
    x_ticks: dict[float, str],
    equal: float | None = None,
    shares: bool = False,
) -> Figure:
    """Draw the panels, log-log, with a level line at `equal` if it is given; of `shares` the y axis goes from 0 to 1.

    `x_ticks` has the words for every measured place, written as far as they fit. Without a panel the figure says so.
    """
    if not panels:
        return blank_figure(title, NOTHING_TO_DRAW)
    heights_in = [height_of(panel) for panel in panels]
    figure, all_axes = stacked_panels(title, heights_in, texts_of(panels), [panel.title for panel in panels])
    refined = {x for panel in panels for line in panel.lines for x in line.refined}
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.set_ylabel(panel.y_label or y_label)
        if equal is not None:
            axes.axhline(equal, color=CROSSOVER_COLOUR, linewidth=0.8)
        draw_panel(axes, panel)
        if shares:
            axes.set_yscale("linear")
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter(y_ticks)
        else:
            _keep_points_in_view(axes, panel)
            make_room(axes, panel.marks)
            tick_values(axes.yaxis, panel.y_ticks or y_ticks)
        tick_counts(axes, x_ticks, refined)
    all_axes[-1].set_xlabel(x_label)
    for axes, panel in zip(all_axes, panels, strict=True):
        write_words(axes, panel)
    return figure


def height_of(panel: LinePanel) -> float:
    """The height in inches that a panel needs for the words beside it."""
    return max(2.4, 0.4 + 0.17 * sum(1 + tag.text.count("\n") for tag in panel.tags))


def texts_of(panels: Sequence[LinePanel]) -> list[str]:
    """All words beside the panels."""
    return [tag.text for panel in panels for tag in panel.tags]


def draw_panel(axes: Axes, panel: LinePanel) -> None:
    """Draw a panel's lines and points."""
    for line in panel.lines:
        if len(line.x):
            _draw(axes, line)
        if line.square:
            _draw_square(axes, line, line.square)
    for tag in panel.published:
        if tag.point:
            axes.plot(*([value] for value in tag.point), "D", color=PUBLISHED_COLOUR, markersize=5, zorder=2)


def write_words(axes: Axes, panel: LinePanel) -> None:
    """Write the words beside a panel, and mark how sizes ended; the axes' limits are final."""
    write_tags(axes, panel.tags)
    draw_status_marks(axes, panel.marks)


def _keep_points_in_view(axes: Axes, panel: LinePanel) -> None:
    points = [y for line in panel.lines for y in line.y]
    points += [tag.point[1] for tag in panel.published if tag.point]
    points += [line.square[1] for line in panel.lines if line.square]
    keep_in_view(axes, points)


def _draw(axes: Axes, line: Line) -> None:
    look = line.look
    axes.plot(
        line.x,
        line.y,
        color=look.colour,
        linestyle=look.dashes,
        marker=look.marker,
        linewidth=1.6,
        markersize=4,
        markevery=max(1, len(line.x) // MOST_MARKERS),
        zorder=3,
    )
    draw_hollow(axes, line.x, line.y, line.refined, look.marker, look.colour)
    draw_band(axes, line.x, line.low, line.high, look.colour, alpha=0.15)
    draw_guide(axes, line.guide, look.colour)
    if line.best is not None:
        _mark(axes, look, (line.x[line.best], line.y[line.best]), "o", 11)


def _draw_square(axes: Axes, line: Line, square: tuple[float, float]) -> None:
    look = line.look
    _mark(axes, look, square, "s", 8)
    if len(line.x):
        near = int(np.argmin(np.abs(np.log(line.x / square[0]))))
        ends = ([line.x[near], square[0]], [line.y[near], square[1]])
        axes.plot(*ends, color=look.colour, linestyle=look.dashes, linewidth=0.8, alpha=0.6, zorder=2)


def _mark(axes: Axes, look: Look, point: tuple[float, float], marker: str, size: float) -> None:
    """A hollow mark in the colour of a line."""
    axes.plot(
        [point[0]],
        [point[1]],
        marker,
        markersize=size,
        markerfacecolor="none",
        markeredgecolor=look.colour,
        markeredgewidth=1.5,
        zorder=4,
    )

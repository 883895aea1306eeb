"""Draw a column of panels, each with lines or bars and with a legend beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from crossover.compare.pairings import baseline_settings
from crossover.config.words import CPU_THREADS, series_axes
from crossover.drawing.style import (
    INK,
    PALETTE,
    PUBLISHED_COLOUR,
    PUBLISHED_GREYS,
    WIDTH_IN,
    blank_figure,
    log_ticks,
    published_look,
    side_look,
    size_ticks,
    stacked_axes,
    worded,
    wrapped,
)
from crossover.drawing.view import StudyView, published_series
from crossover.tables.frames import first_row, rows_with
from crossover.tables.labels import NAMED_AXES, PROTOCOL_WORDS, name_by, side_word, varying
from crossover.tables.registry import CELLS
from crossover.text import count_text, place_text

Floats = np.ndarray[Any, np.dtype[np.float64]]
Dots = tuple[Floats, Floats]

DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "P", "X", "D")
LEGEND_LETTERS = 40
TITLE_LETTERS = 60
ROW_IN, BAR_IN = 0.19, 0.24
CROSS_SHARE = 0.05

POINTS: dict[str, Any] = {"linewidth": 1.7, "markersize": 4, "zorder": 3}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markersize": 4, "zorder": 3.5}
RING: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markersize": 11, "markeredgewidth": 1.5, "zorder": 4}
CROSS: dict[str, Any] = {"marker": "x", "markersize": 6, "markeredgewidth": 1.8, "linestyle": "", "zorder": 5}


@dataclass(frozen=True)
class Look:
    """Colour, dashes and marker of a line."""

    colour: str
    dashes: str = "-"
    marker: str = "o"


@dataclass(frozen=True)
class Line:
    """Points from left to right, with the ends of their 95 % intervals (NaN without one)."""

    label: str
    look: Look
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    refined: Floats
    """The x of points that refinement added."""
    dots: Dots | None = None
    """The trials behind the points."""
    lost: Floats = field(default_factory=lambda: np.array([]))
    """The x of cells whose status is not ok."""
    ring: int | None = None
    """Index of the point to ring."""


@dataclass(frozen=True)
class Panel:
    """Lines in one coordinate system, or bars."""

    title: str
    lines: Sequence[Line]
    decorate: Callable[[Axes], None]
    """Draws what is not in `lines`, such as crossovers, published points or bars."""
    finish: Callable[[Axes], None] | None = None
    """Called after everything is drawn."""
    bars: int = 0
    """Height of the bars that `decorate` draws, in rows of text; 0 for lines."""


MakeLine = Callable[[pd.DataFrame, str, Look], Line | None]
"""Makes a line from its rows, name and look; None if there is nothing to show."""

BY_EXECUTION = (
    ["workload", "protocol", "batch_size", "execution"],
    ["precision", "variant", "machine", "device"],
)
BY_DEVICE = (
    ["device", "workload", "protocol", "batch_size", "variant"],
    ["precision", "execution", "machine"],
)
"""The axes that separate panels, and those that separate the lines of a panel."""


def arrange(
    view: StudyView,
    rows: pd.DataFrame,
    make_line: MakeLine,
    axes: tuple[list[str], list[str]] = BY_EXECUTION,
    decorate: Callable[[pd.DataFrame, Axes], None] = lambda *_: None,
) -> list[Panel]:
    """Group rows into panels and lines by `axes`; `decorate` gets a panel's rows."""
    # If the x axis is the batch size, the size takes its place among these axes.
    replaced = {"batch_size": "size"} if view.x_axis == "batch_size" else {}
    per_panel, per_line = ([replaced.get(axis, axis) for axis in names] for names in axes)
    if view.x_axis == CPU_THREADS and "size" not in [*per_panel, *per_line]:
        per_panel.append("size")
    varied = varying(view.cells, [*per_panel, *per_line])
    looks = looks_of(view.cells, per_line)
    panels = []
    for _, group in rows.groupby(per_panel, sort=False):
        lines = [
            make_line(
                line.sort_values("x", kind="stable"),
                _line_name(view, first_row(line), per_line, varied),
                looks(first_row(line)),
            )
            for _, line in group.groupby(per_line, sort=False)
        ]
        title = _title(view, first_row(group), per_panel, varied)
        panels.append(Panel(title, [line for line in lines if line], partial(decorate, group)))
    return [panel for panel in panels if panel.lines]


def looks_of(cells: pd.DataFrame, axes: Iterable[str]) -> Callable[[Mapping[str, Any]], Look]:
    """A function from a row to the look of its line.

    If only devices vary, a line has its device's colour. Otherwise the first varying axis determines the colour, the
    second the dashes, and the third the marker. A value that no cell has, such as the name of a reference, ranks last.
    """
    varied = varying(cells, axes)
    if not set(varied) - {"device"}:
        return lambda row: Look(*side_look(row["device"]))
    ranks = [{value: rank for rank, value in enumerate(cells[axis].unique())} for axis in varied]
    scales = (PALETTE, DASHES, MARKERS)

    def look(row: Mapping[str, Any]) -> Look:
        values = [(row[axis], of_value) for axis, of_value in zip(varied, ranks, strict=True)]
        row_ranks = [of_value.setdefault(value, len(of_value)) for value, of_value in values]
        return Look(*(scale[rank % len(scale)] for scale, rank in zip(scales, row_ranks, strict=False)))

    return look


def _line_name(view: StudyView, row: Mapping[str, Any], axes: Sequence[str], varied: Sequence[str]) -> str:
    device = ""
    if "device" in axes:
        threads = row.get("threads") if view.has_fewer_cores else None
        device = side_word(row["device"], threads) if view.has_short_names else view.device_title(row["device"])
    named = [axis for axis in NAMED_AXES if axis in axes and axis in varied]
    return ", ".join(words for words in (device, name_by(row, named)) if words)


def _title(view: StudyView, row: Mapping[str, Any], axes: Sequence[str], varied: Sequence[str]) -> str:
    words = {"protocol": PROTOCOL_WORDS[row["protocol"]]}
    row = {**{name: view.cells[name].iloc[0] for name in ("size_name", "batch_name")}, **row}
    if "device" in axes:
        words["device"] = view.device_title(row["device"])
    named = [axis for axis in axes if axis in varied or axis == "device"]
    return ", ".join(words.get(axis) or name_by(row, [axis]) for axis in named)


def column(rows: pd.DataFrame, name: str) -> Floats:
    """A column as floats; missing values are NaN."""
    return rows[name].to_numpy(float, na_value=np.nan)


def line_of(
    quantity: str, cells: pd.DataFrame, name: str, look: Look, scale: float = 1, dots: Dots | None = None
) -> Line | None:
    """A line of one column of cells, times `scale`; None if there are no values and no failures."""
    valued = cells.dropna(subset=[quantity, "x"])
    if valued.empty and (cells["status"] == "ok").all():
        return None
    y = column(valued, quantity) * scale
    ends = CELLS[quantity].interval
    low, high = (column(valued, end) * scale for end in ends) if ends else (np.full(len(y), np.nan),) * 2
    label = name + _lost_words(cells)
    return Line(label, look, column(valued, "x"), y, low, high, _refined_x(cells), dots, _lost_x(cells))


def ratio_line(view: StudyView, rows: pd.DataFrame, name: str, look: Look) -> Line:
    """A line of a pair's ratios, with crosses where either side is lost."""
    first, x = first_row(rows), column(rows, "x")
    baseline = {"device": first["baseline"], "machine": first["baseline_machine"]}
    if first["pair"] == "settings":
        baseline = baseline_settings(view.cells)
    axes = [*series_axes(view.x_axis), "device"]
    cells = pd.concat([rows_with(view.cells, axes, first | side) for side in ({}, baseline)])
    ratio, low, high = (column(rows, end) for end in ("ratio", "ratio_low", "ratio_high"))
    return Line(name, look, x, ratio, low, high, _refined_x(cells), lost=_lost_x(cells))


def _refined_x(cells: pd.DataFrame) -> Floats:
    return column(cells[cells["refined"].astype(bool)], "x")


def _lost_x(cells: pd.DataFrame) -> Floats:
    return np.unique(column(cells[cells["status"] != "ok"].dropna(subset=["x"]), "x"))


def _lost_words(cells: pd.DataFrame) -> str:
    """The note in a legend on cells that are not ok: ', oom at 4,096' on the first, ': unsupported' if none is ok."""
    lost = cells[cells["status"] != "ok"]
    if lost.empty:
        return ""
    if lost["step_time_s"].isna().all() and len(lost) == len(cells):
        return f": {', '.join(lost['status'].unique())}"
    return f", {lost['status'].iloc[0]} at {lost['size'].iloc[0]:,}"


def draw_panels(
    view: StudyView,
    panels: Sequence[Panel],
    y_label: str,
    y_ticks: Formatter,
    *,
    x_label: str | None = None,
    x_words: Mapping[float, str] | None = None,
    shares: bool = False,
    nothing: str = "Nothing that this figure shows was measured.",
) -> Figure:
    """Draw a column of panels. Lines share a logarithmic x axis; with `shares`, y is linear from 0 to 1."""
    if not panels:
        return blank_figure(view.study.title, nothing)
    figure, axes_of_panels = stacked_axes(view.study.title, len(panels))
    drawn = list(zip(axes_of_panels, panels, strict=True))
    over_size = [axes for axes, panel in drawn if not panel.bars]
    for axes, panel in drawn:
        axes.set_title(wrapped(panel.title, TITLE_LETTERS))
        if panel.bars:
            panel.decorate(axes)
        else:
            axes.set(xscale="log", yscale="linear" if shares else "log", ylabel=y_label)
            _draw_lines(axes, panel, y_ticks, shares)
        if panel.finish:
            panel.finish(axes)
    if over_size:
        refined = {float(x) for _, panel in drawn for line in panel.lines for x in line.refined}
        for axes in over_size[:-1]:
            axes.sharex(over_size[-1])
            axes.tick_params(labelbottom=False)
        _tick_x(view, over_size, x_words, refined)
        over_size[-1].set_xlabel(x_label or view.x_label())
    _size_figure(figure, drawn)
    figure.align_ylabels(over_size)
    return figure


def _draw_lines(axes: Axes, panel: Panel, y_ticks: Formatter, shares: bool) -> None:
    crossed = [line for line in panel.lines if len(line.lost) and len(line.x)]
    if shares:
        axes.set_ylim(0, 1)
    else:
        _keep_in_view(axes, panel, len(crossed))
    for line in panel.lines:
        _draw(axes, line)
    panel.decorate(axes)
    if shares:
        axes.yaxis.set_major_formatter(y_ticks)
    else:
        log_ticks(axes.yaxis, y_ticks)
    for row, line in enumerate(crossed):
        heights = np.full(len(line.lost), CROSS_SHARE * (row + 0.7))
        axes.plot(line.lost, heights, color=line.look.colour, transform=axes.get_xaxis_transform(), **CROSS)


def _size_figure(figure: Figure, drawn: Sequence[tuple[Axes, Panel]]) -> None:
    least = 3.2 if len(drawn) == 1 else 2.6
    heights = [
        max(BAR_IN * panel.bars if panel.bars else least, ROW_IN * draw_legend(axes)) + (0.7 if panel.bars else 0.3)
        for axes, panel in drawn
    ]
    grid = drawn[0][0].get_gridspec()
    assert grid is not None
    grid.set_height_ratios(heights)
    figure.set_size_inches(WIDTH_IN, 0.7 + sum(heights))


def draw_legend(axes: Axes) -> int:
    """Draw a legend to the right of a panel; return its number of rows of text."""
    handles, labels = axes.get_legend_handles_labels()
    rows = [wrapped(label, LEGEND_LETTERS) for label in labels]
    if handles:
        axes.legend(handles, rows, loc="upper left", bbox_to_anchor=(1.005, 1.03))
    return sum(1 + words.count("\n") for words in rows)


def _tick_x(view: StudyView, grid: Sequence[Axes], words: Mapping[float, str] | None, refined: set[float]) -> None:
    if words is not None:
        return size_ticks(grid[-1], words)
    cells = view.cells.dropna(subset=["x"]).drop_duplicates("x")
    if view.x_axis != "parameters":
        return size_ticks(grid[-1], {x: f"{x:,.0f}" for x in column(cells, "x").tolist()}, refined)
    names = {x: f"{size:,}" for x, size in zip(column(cells, "x").tolist(), cells["size"], strict=True)}
    log_ticks(grid[-1].xaxis, worded(count_text))
    above = grid[0].secondary_xaxis("top")
    above.set_xlabel(str(view.cells["size_name"].iloc[0]))
    size_ticks(above, names, refined)  # type: ignore[arg-type]  # a secondary axis is like Axes here
    return None


def _draw(axes: Axes, line: Line) -> None:
    look = line.look
    axes.plot(line.x, line.y, look.dashes, color=look.colour, marker=look.marker, label=line.label, **POINTS)
    hollow = np.isin(line.x, line.refined)
    axes.plot(line.x[hollow], line.y[hollow], look.marker, color=look.colour, **HOLLOW)
    if line.dots:
        axes.scatter(*line.dots, s=9, color=look.colour, alpha=0.45, linewidth=0, zorder=2.5)
    _draw_band(axes, line.x, line.low, line.high, look.colour)
    if line.ring is not None:
        axes.plot(line.x[line.ring], line.y[line.ring], color=look.colour, **RING)


def _draw_band(axes: Axes, x: Floats, low: Floats, high: Floats, colour: str) -> None:
    """Shade the intervals of a line; an interval whose neighbours have none is a vertical bar."""
    bounded = ~np.isnan(low)
    padded = np.concatenate([[False], bounded, [False]])
    alone = bounded & ~padded[:-2] & ~padded[2:]
    if (bounded & ~alone).any():
        axes.fill_between(x, low, high, where=bounded, color=colour, alpha=0.16, linewidth=0)
    if alone.any():
        axes.vlines(x[alone], low[alone], high[alone], color=colour, alpha=0.5, linewidth=2)


def _keep_in_view(axes: Axes, panel: Panel, crosses: int) -> None:
    """Limit the y axis to the points: if it covered wide intervals (of two trials), lines would look flat."""
    axes.set_autoscaley_on(False)
    points = [y for line in panel.lines for y in line.y if y > 0]
    if points:
        low, high = min(points) / 1.6, max(points) * 1.6
        axes.set_ylim(low / (high / low) ** (CROSS_SHARE * crosses), high)


def include_y(axes: Axes, values: Sequence[float]) -> None:
    """Extend a panel's y axis to include these values."""
    low, high = axes.get_ylim()
    axes.set_ylim(min([low, *(value / 1.3 for value in values)]), max([high, *(value * 1.3 for value in values)]))


def draw_level(axes: Axes, words: str) -> None:
    """Draw a horizontal line at 1, explained in the legend."""
    axes.axhline(1, color=INK, linewidth=0.8, zorder=1, label=words)


def with_ringed_maximum(line: Line | None, words: Callable[[int], str]) -> Line | None:
    """Ring the highest point of a line, and add `words(index of the point)` to the legend entry."""
    if line is None or not len(line.y):
        return line
    highest = int(np.argmax(line.y))
    return replace(line, label=f"{line.label}\n{words(highest)}".strip(), ring=highest)


def mark_published_crossover(axes: Axes, view: StudyView) -> None:
    """Mark the published crossover: a line, or a band if it is a range."""
    crossover = view.study.published and view.study.published.crossover
    if not crossover:
        return
    low, high = crossover
    label = f"published: {' to '.join(place_text(end, view.x_label()) for end in sorted({low, high}))}"
    if low == high:
        axes.axvline(low, color=PUBLISHED_COLOUR, linestyle="--", linewidth=1.2, zorder=1, label=label)
    else:
        axes.axvspan(low, high, color=PUBLISHED_COLOUR, alpha=0.13, linewidth=0, zorder=0, label=label)


def plot_published(axes: Axes, rows: Sequence[Mapping[str, Any]], x: str, y: str) -> None:
    """Draw published points, each series with a marker, a grey and a legend entry."""
    for series in published_series(rows, [x], ["device", "hardware", "label"]):
        points = [[float(run[axis]) for run in series.runs] for axis in (x, y)]
        colour, marker = published_look(PUBLISHED_GREYS, series.rank)
        label = ", ".join(filter(None, [f"published: {published_name(series.runs[0])}", series.words]))
        include_y(axes, points[1])
        axes.plot(*points, marker, color=colour, markersize=5, label=label, zorder=2)


def published_name(row: Mapping[str, Any]) -> str:
    """Hardware and label of a published result; if it has neither, its device."""
    return ", ".join(words for words in (row["hardware"], row["label"]) if words) or side_word(row["device"])

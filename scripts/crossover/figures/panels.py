"""Panels one below the other: lines over a logarithmic axis, their intervals, published points, and a legend each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from crossover.config.words import BASELINE
from crossover.figures.style import (
    INK,
    PALETTE,
    PUBLISHED_COLOUR,
    WIDTH_IN,
    log_ticks,
    side_look,
    size_ticks,
    use_style,
    worded,
)
from crossover.figures.view import StudyView
from crossover.tables.frames import first_row
from crossover.tables.labels import NAMED_AXES, PROTOCOL_WORDS, device_label, name_by, side_word, varying
from crossover.text import count_text

Floats = np.ndarray[Any, np.dtype[np.float64]]
Dots = tuple[Floats, Floats]

DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "v", "P", "X", "D")


@dataclass(frozen=True)
class Look:
    """How a line is told apart."""

    colour: str
    dashes: str = "-"
    marker: str = "o"


@dataclass(frozen=True)
class Line:
    """Points from left to right with the ends of their 95 % intervals; NaN where there is none."""

    label: str
    look: Look
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    refined: Floats
    """The x that refinement added; drawn hollow."""
    dots: Dots | None = None
    """The trials behind the points."""
    lost: Floats = field(default_factory=lambda: np.array([]))
    """The x of cells that ended without a result; crosses at the lower edge."""
    ring: int | None = None
    """The point to ring."""


@dataclass(frozen=True)
class Panel:
    """Lines that share a pair of axes."""

    title: str
    lines: Sequence[Line]
    decorate: Callable[[Axes], None] | None = None
    """Draws what is no line: crossovers, published points, a level."""
    finish: Callable[[Axes], None] | None = None
    """Sets a label or ticks of its own, when all is drawn."""


Columns = tuple[str, str, str]
"""Columns of a quantity and of the ends of its 95 % interval."""

Maker = Callable[[pd.DataFrame, str, Look], Line | None]
"""Makes a line of its rows, its name and its look; None where it has nothing to show."""

BY_EXECUTION = (
    ["workload", "protocol", "batch_size", "execution"],
    ["precision", "variant", "machine", "device"],
)
BY_DEVICE = (
    ["device", "workload", "protocol", "batch_size", "variant"],
    ["precision", "execution", "machine"],
)
"""What a panel keeps fixed, and what tells its lines apart."""


def arrange(
    view: StudyView,
    rows: pd.DataFrame,
    maker: Maker,
    axes: tuple[list[str], list[str]] = BY_EXECUTION,
    decorate: Callable[[Axes, pd.DataFrame], None] | None = None,
) -> list[Panel]:
    """The panels of a study's rows."""
    per_panel, per_line = axes
    varied = varying(view.cells, [*per_panel, *per_line])
    looks = looks_of(view.cells, per_line)
    panels = []
    for _, own in rows.groupby(per_panel, sort=False):
        lines = [
            maker(line, _line_name(view, first_row(line), per_line, varied), looks(first_row(line)))
            for _, line in own.groupby(per_line, sort=False)
        ]
        panel_decorate = None if decorate is None else _bound(decorate, own)
        panels.append(Panel(_title(view, first_row(own), per_panel, varied), [x for x in lines if x], panel_decorate))
    return [panel for panel in panels if panel.lines]


def _bound(decorate: Callable[[Axes, pd.DataFrame], None], rows: pd.DataFrame) -> Callable[[Axes], None]:
    return lambda axes: decorate(axes, rows)


def looks_of(cells: pd.DataFrame, axes: Iterable[str]) -> Callable[[Mapping[str, Any]], Look]:
    """The look of a row: by its device where nothing else varies, else by colour, dashes and marker in turn."""
    varied = varying(cells, axes)
    if not set(varied) - {"device"}:
        return lambda row: Look(*side_look(row["device"]))
    ranks = [{value: rank for rank, value in enumerate(cells[axis].unique())} for axis in varied]
    scales = (PALETTE, DASHES, MARKERS)

    def look(row: Mapping[str, Any]) -> Look:
        places = [own[row[axis]] for axis, own in zip(varied, ranks, strict=True)]
        return Look(*(scale[place % len(scale)] for scale, place in zip(scales, places, strict=False)))

    return look


def _line_name(view: StudyView, row: Mapping[str, Any], axes: Sequence[str], varied: Sequence[str]) -> str:
    threads = row.get("threads") if view.has_fewer_cores else None
    device = ""
    if "device" in axes:
        several = view.has_machines or view.has_fewer_cores
        device = side_word(row["device"], threads) if several else view.device_title(row["device"])
    named = [axis for axis in NAMED_AXES if axis in axes and axis in varied]
    return ", ".join(words for words in (device, name_by(row, named)) if words)


def _title(view: StudyView, row: Mapping[str, Any], axes: Sequence[str], varied: Sequence[str]) -> str:
    words = {"protocol": PROTOCOL_WORDS[row["protocol"]]}
    if "device" in axes:
        words["device"] = view.device_title(row["device"])
    named = [axis for axis in axes if axis in varied or axis == "device"]
    return ", ".join(words.get(axis) or name_by(row, [axis]) for axis in named)


def column(rows: pd.DataFrame, name: str) -> Floats:
    """A column as numbers; NaN where it is empty."""
    return rows[name].to_numpy(float, na_value=np.nan)


def line_of(
    cells: pd.DataFrame, name: str, look: Look, columns: Columns, scale: float = 1, dots: Dots | None = None
) -> Line | None:
    """The line of a quantity of cells; its name says how cells ended that have no time."""
    known = cells.dropna(subset=[columns[0], "x"])
    lost = cells[cells["status"] != "ok"]
    if known.empty and lost.empty:
        return None
    y, low, high = (column(known, own) * scale for own in columns)
    refined = column(cells[cells["refined"].astype(bool)], "x")
    ended = column(lost.dropna(subset=["x"]), "x")
    return Line(name + lost_words(cells), look, column(known, "x"), y, low, high, refined, dots, ended)


def ratio_line(view: StudyView, rows: pd.DataFrame, name: str, look: Look) -> Line:
    """The line of a pair's ratios."""
    refined = set(view.cells.loc[view.cells["refined"].astype(bool), "x"])
    x = column(rows, "x")
    hollow = np.array([value for value in x if value in refined])
    ratio, low, high = (column(rows, end) for end in ("ratio", "ratio_low", "ratio_high"))
    return Line(name, look, x, ratio, low, high, hollow)


def lost_words(cells: pd.DataFrame) -> str:
    """How the first cell without a result ended: ': unsupported' where it is so of all, ', oom at 4,096'."""
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
    nothing: str = "Nothing was measured of what this figure shows.",
) -> Figure:
    """Draw panels one below the other with shared x, log-log; of `shares` the y axis is linear from 0 to 1."""
    if not panels:
        return blank_figure(view.title, nothing)
    use_style()
    heights = [max(2.6, 0.9 + 0.19 * (len(panel.lines) + 3)) for panel in panels]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(WIDTH_IN, 0.7 + sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    figure.suptitle(view.title, x=0.01, ha="left")
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        axes.set(xscale="log", yscale="linear" if shares else "log", ylabel=y_label)
        axes.set_title(panel.title)
        for line in panel.lines:
            _draw(axes, line)
        if not shares:
            _keep_in_view(axes, panel)
        if panel.decorate:
            panel.decorate(axes)
        if shares:
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter(y_ticks)
        else:
            log_ticks(axes.yaxis, y_ticks)
        for line in panel.lines:
            if len(line.lost):
                axes.plot(line.lost, np.full(len(line.lost), 0.03), "x", color=line.look.colour, markersize=7,
                          markeredgewidth=2, transform=axes.get_xaxis_transform(), zorder=5, clip_on=False)  # fmt: skip
        if panel.finish:
            panel.finish(axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.03))
    refined = {float(x) for panel in panels for line in panel.lines for x in line.refined}
    _tick_x(view, list(grid[:, 0]), x_words, refined)
    grid[-1, 0].set_xlabel(x_label or view.x_label())
    return figure


def _tick_x(view: StudyView, grid: Sequence[Axes], words: Mapping[float, str] | None, refined: set[float]) -> None:
    """Measured sizes; where the axis counts parameters, round numbers, with the sizes along the upper edge."""
    if words is not None:
        return size_ticks(grid[-1], words)
    sizes = view.cells.dropna(subset=["x"]).drop_duplicates("x").set_index("x")["size"]
    known = {float(x): f"{size:,}" for x, size in sizes.items()}  # type: ignore[arg-type]
    if view.x_axis == "size":
        return size_ticks(grid[-1], known, refined)
    log_ticks(grid[-1].xaxis, worded(count_text))
    above = grid[0].secondary_xaxis("top")
    above.set_xlabel(str(view.cells["size_name"].iloc[0]))
    size_ticks(above, known, refined)  # type: ignore[arg-type]
    return None


def blank_figure(title: str, sentence: str) -> Figure:
    """A figure that says why it shows nothing."""
    use_style()
    figure = plt.figure(figsize=(WIDTH_IN, 1.2))
    figure.suptitle(title, x=0.01, ha="left")
    figure.text(0.01, 0.3, sentence, fontsize=11)
    return figure


def _draw(axes: Axes, line: Line) -> None:
    look = line.look
    few = max(1, len(line.x) // 30)
    axes.plot(line.x, line.y, color=look.colour, linestyle=look.dashes, marker=look.marker, linewidth=1.7,
              markersize=4, markevery=few, zorder=3, label=line.label)  # fmt: skip
    hollow = np.isin(line.x, line.refined)
    axes.plot(line.x[hollow], line.y[hollow], look.marker, color=look.colour, markerfacecolor="white", markersize=4,
              zorder=3.5)  # fmt: skip
    if line.dots:
        axes.scatter(*line.dots, s=9, color=look.colour, alpha=0.45, linewidth=0, zorder=2.5)
    draw_band(axes, line.x, line.low, line.high, look.colour)
    if line.ring is not None:
        axes.plot(line.x[line.ring], line.y[line.ring], "o", color=look.colour, markerfacecolor="none", markersize=11,
                  markeredgewidth=1.5, zorder=4)  # fmt: skip


def draw_band(axes: Axes, x: Floats, low: Floats, high: Floats, colour: str) -> None:
    """Shade the intervals of a line; a bar where the points beside have none."""
    known = ~np.isnan(low)
    axes.fill_between(x, low, high, where=known, color=colour, alpha=0.16, linewidth=0)
    beside = np.concatenate([[False], known, [False]])
    alone = known & ~beside[:-2] & ~beside[2:]
    axes.vlines(x[alone], low[alone], high[alone], color=colour, alpha=0.5, linewidth=2)


def _keep_in_view(axes: Axes, panel: Panel) -> None:
    """Let wide intervals, as two trials give them, run out of the panel instead of shrinking all else."""
    points = [y for line in panel.lines for y in line.y if y > 0]
    if points:
        axes.set_ylim(min(points) / 1.6, max(points) * 1.6)


def reach(axes: Axes, points: Sequence[float]) -> None:
    """Widen a panel so that these points are in view, too."""
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, *(point / 1.3 for point in points)), max(high, *(point * 1.3 for point in points)))


def draw_level(axes: Axes, words: str) -> None:
    """A level at 1, with what it means."""
    axes.axhline(1, color=INK, linewidth=0.8, zorder=1)
    axes.annotate(words, (0, 1), (3, 3), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8)


def mark_published_crossover(axes: Axes, view: StudyView) -> None:
    """A dashed line, or a band where the source leaves a range."""
    if view.published_crossover is None:
        return
    low, high = view.published_crossover
    if low == high:
        label = f"published: {count_text(low, 3)}"
        axes.axvline(low, color=PUBLISHED_COLOUR, linestyle="--", linewidth=1.2, zorder=1, label=label)
    else:
        label = f"published: {count_text(low, 3)} to {count_text(high, 3)}"
        axes.axvspan(low, high, color=PUBLISHED_COLOUR, alpha=0.13, linewidth=0, zorder=0, label=label)


def plot_published(axes: Axes, rows: Sequence[Mapping[str, Any]], x: str, y: str, name: Callable[..., str]) -> None:
    """Grey diamonds for published points, a legend's entry for each name."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    for number, (words, own) in enumerate(groups.items()):
        marker = ("D", "s", "^", "v")[number % 4]
        points = [[float(row[axis]) for row in own] for axis in (x, y)]
        reach(axes, points[1])
        axes.plot(*points, marker, color=PUBLISHED_COLOUR, markersize=5, label=f"published: {words}", zorder=2)


def hardware_of(row: Mapping[str, Any]) -> str:
    """What a published result ran on."""
    return str(row.get("hardware") or device_label(row.get("device") or BASELINE, None))

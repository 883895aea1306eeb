"""The figure of time over memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.drawing.panels import draw_legend
from crossover.drawing.style import (
    BYTES,
    PUBLISHED_COLOUR,
    SECONDS,
    WIDTH_IN,
    blank_figure,
    log_ticks,
    stacked_axes,
    wrapped,
)
from crossover.drawing.view import NOTE_LETTERS, Kind, StudyView
from crossover.tables.frames import records
from crossover.tables.labels import NAMED_AXES, name_by, varying
from crossover.text import listed, spaced

TRADE_OFF_IN = 3.6


def _draw_trade_off(view: StudyView) -> Figure:
    view = view.on_all_cores()
    points = {str(device): _memory_and_time(view, str(device)) for device in view.cells["device"].unique()}
    points = {device: table for device, table in points.items() if len(table)}
    if not points:
        return blank_figure(view.study.title, "No cell has both a time and a memory peak.")
    figure, axes_of_devices = stacked_axes(view.study.title, len(points))
    heights = [
        _draw_trade_off_panel(axes, view, device, table)
        for axes, (device, table) in zip(axes_of_devices, points.items(), strict=True)
    ]
    grid = axes_of_devices[0].get_gridspec()
    assert grid is not None
    grid.set_height_ratios(heights)
    figure.set_size_inches(WIDTH_IN, 0.5 + sum(heights))
    return figure


def pareto_front(points: pd.DataFrame) -> pd.DataFrame:
    """The Pareto-optimal points in memory and time, sorted by memory."""
    points = points.sort_values(["memory", "time"])
    return points[points["time"] < points["time"].cummin().shift(fill_value=np.inf)]


def _memory_and_time(view: StudyView, device: str) -> pd.DataFrame:
    """Each cell's memory and time of a sample, and names for its colour (first varying axis) and shape (the others)."""
    first, *others = varying(view.cells, NAMED_AXES) or ["precision"]
    memory = view.memory_column(device)
    cells = view.cells[view.cells["device"] == device].dropna(subset=["samples_per_s", memory])
    cells = cells[cells[memory] > 0]
    # The legend shows the names of these columns as headings.
    groups = {", ".join(map(spaced, axes)): axes for axes in ([first], others)}
    names = {words: [name_by(cell, axes) for cell in records(cells)] for words, axes in groups.items()}
    return pd.DataFrame(
        {"memory": cells[memory].astype(float), "time": 1 / cells["samples_per_s"].astype(float), **names}
    )


def _draw_trade_off_panel(axes: Axes, view: StudyView, device: str, points: pd.DataFrame) -> float:
    """Draw a panel; return its height in inches."""
    import seaborn as sns  # here, since importing it takes most of a second, and no other figure needs it

    _, _, colour, *shape = points.columns
    style = {"style": shape[0]} if shape and shape[0] else {}
    palette = sns.color_palette("colorblind", points[colour].nunique())
    sns.scatterplot(points, x="memory", y="time", hue=colour, **style, palette=palette, s=70, ax=axes, zorder=3)
    best = pareto_front(points)
    axes.step(best["memory"], best["time"], where="post", color=PUBLISHED_COLOUR, linewidth=1, zorder=1)
    hardware = _draw_published_points(axes, view, device)
    axes.set(xscale="log", yscale="log", ylabel="time of a sample")
    meaning = {
        "rss_growth_bytes": "growth of the process",
        "device_used_bytes": "all memory in use on the GPU",
        "peak_allocated_bytes": "peak that tensors needed",
    }[view.memory_column(device)]
    axes.set_xlabel("\n".join([f"memory: {meaning}", *hardware]))
    axes.set_title(view.device_title(device))
    log_ticks(axes.xaxis, BYTES)
    log_ticks(axes.yaxis, SECONDS)
    return max(TRADE_OFF_IN, 0.19 * draw_legend(axes) + 0.8)


def _draw_published_points(axes: Axes, view: StudyView, device: str) -> list[str]:
    """Draw a device's published runs; return a note on their hardware if it is known."""
    published = view.published
    points = published.assign(memory=published["peak_allocated_bytes"].fillna(published["device_used_bytes"]))
    points = points[(points["device"] == device).fillna(False)].dropna(subset=["memory", "samples_per_s"])
    for number, row in enumerate(records(points), 1):
        point = (row["memory"], 1 / row["samples_per_s"])
        words = f"{number}: published, {row['label'] or 'unnamed'}"
        axes.plot(*([value] for value in point), "D", color=PUBLISHED_COLOUR, markersize=5, label=words, zorder=2)
        axes.annotate(str(number), point, (5, 3), textcoords="offset points", fontsize=8, color=PUBLISHED_COLOUR)
    hardware = points["hardware"].dropna().unique().tolist()
    return [wrapped(f"published: measured on {listed(hardware)}", NOTE_LETTERS)] if len(hardware) else []


TRADE_OFF = Kind(
    "Time per sample over memory; lower left is better. The grey line joins the Pareto-optimal cells. Grey diamonds: "
    "published, numbered in the legend.",
    _draw_trade_off,
)

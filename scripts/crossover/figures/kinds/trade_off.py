"""Time against memory: what each way to save one costs of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import BASELINE
from crossover.figures.panels import blank_figure
from crossover.figures.style import (
    BYTES,
    PUBLISHED_COLOUR,
    SECONDS,
    WIDTH_IN,
    log_ticks,
    use_style,
)
from crossover.figures.view import StudyView
from crossover.tables.frames import records
from crossover.tables.labels import NAMED_AXES, name_by, varying
from crossover.text import bytes_text, seconds_text, spaced

CAPTION = (
    "Time of a sample over memory: down and to the left is better in both. The grey line joins the cells that no "
    "other cell beats in both. Grey diamonds: published."
)

Point = tuple[float, float]


def draw(view: StudyView) -> Figure:
    """A panel a device, a point a cell."""
    view = view.on_all_cores()
    shown = {str(device): points for device in view.cells["device"].unique() if (points := _ours(view, str(device)))}
    if not shown:
        return blank_figure(view.title, "No cell has both a time and its memory.")
    use_style()
    rows = {device: len(points) + len(_published(view, device)) for device, points in shown.items()}
    heights = [max(3.0, 0.9 + 0.19 * count) for count in rows.values()]
    figure, grid = plt.subplots(
        len(shown), 1, figsize=(WIDTH_IN, 0.6 + sum(heights)), squeeze=False, height_ratios=heights
    )
    figure.suptitle(view.title, x=0.01, ha="left")
    for axes, (device, points) in zip(grid[:, 0], shown.items(), strict=True):
        _draw(axes, points, _published(view, device))
        whole = view.memory_column(device) == "device_used_bytes"
        words = "all that is in use on the GPU" if whole else "peak that tensors needed"
        axes.set_xlabel(f"memory: {'growth of the process at its peak' if device == BASELINE else words}")
        axes.set_title(view.device_title(device))
    return figure


def front(points: Sequence[Point]) -> list[Point]:
    """The Pareto front of memory and time, sorted by memory."""
    kept: list[Point] = []
    for memory, time in sorted(points):
        if not kept or time < kept[-1][1]:
            kept.append((memory, time))
    return kept


def _ours(view: StudyView, device: str) -> list[tuple[str, Point]]:
    memory = view.memory_column(device)
    named = varying(view.cells, NAMED_AXES) or ["precision"]
    cells = records(view.cells[view.cells["device"] == device].dropna(subset=["samples_per_s", memory]))
    return [(name_by(cell, named), (cell[memory], 1 / cell["samples_per_s"])) for cell in cells if cell[memory] > 0]


def _published(view: StudyView, device: str) -> list[tuple[str, Point]]:
    found = []
    for row in records(view.published):
        memory = row["peak_allocated_bytes"] or row["device_used_bytes"]
        if row["device"] == device and memory and row["samples_per_s"]:
            words = [row["hardware"], spaced(row["label"] or "")]
            found.append((", ".join(filter(None, words)) or "published", (memory, 1 / row["samples_per_s"])))
    return found


def _draw(axes: Axes, ours: Sequence[tuple[str, Point]], published: Sequence[tuple[str, Point]]) -> None:
    axes.set(xscale="log", yscale="log", ylabel="time of a sample")
    line: Any = list(zip(*front([point for _, point in ours]), strict=True))
    axes.step(*line, where="post", color=PUBLISHED_COLOUR, linewidth=1, zorder=1)
    import seaborn as sns  # takes most of a second, which no other kind needs

    points = pd.DataFrame([[*point, f"{name}: {_words(point)}"] for name, point in ours], columns=["x", "y", "cell"])
    sns.scatterplot(points, x="x", y="y", hue="cell", style="cell", palette="colorblind", s=70, ax=axes, zorder=3)
    for name, (memory, time) in published:
        words = f"published: {name}: {_words((memory, time))}"
        axes.plot([memory], [time], "D", color=PUBLISHED_COLOUR, markersize=5, label=words, zorder=2)
    axes.set(xlabel="", ylabel="time of a sample")
    log_ticks(axes.xaxis, BYTES)
    log_ticks(axes.yaxis, SECONDS)
    axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.03))


def _words(point: Point) -> str:
    return f"{bytes_text(point[0])}, {seconds_text(point[1])}"

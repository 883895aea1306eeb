"""Time against memory: what each way to save one costs of the other."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import BASELINE
from crossover.figures.panels import blank_figure, draw_legend
from crossover.figures.style import BYTES, PUBLISHED_COLOUR, SECONDS, WIDTH_IN, log_ticks, use_style, wrapped
from crossover.figures.view import NOTE_LETTERS, StudyView
from crossover.tables.frames import records
from crossover.tables.labels import NAMED_AXES, name_by, varying
from crossover.text import listed, spaced

CAPTION = (
    "Time of a sample over memory: down and to the left is better in both. The grey line joins the cells that no "
    "other cell beats in both. Grey diamonds: published, numbered in the legend."
)

PANEL_IN = 3.6


def draw(view: StudyView) -> Figure:
    """A panel a device, a point a cell: its colour and its shape say how it was run."""
    view = view.on_all_cores()
    cells = {str(device): own for device in view.cells["device"].unique() if len(own := _points(view, str(device)))}
    if not cells:
        return blank_figure(view.title, "No cell has both a time and its memory.")
    use_style()
    figure, grid = plt.subplots(len(cells), 1, squeeze=False)
    figure.suptitle(view.title, x=0.01, ha="left")
    heights = [_draw(axes, view, *own) for axes, own in zip(grid[:, 0], cells.items(), strict=True)]
    grid[0, 0].get_gridspec().set_height_ratios(heights)
    figure.set_size_inches(WIDTH_IN, 0.5 + sum(heights))
    return figure


def front(points: pd.DataFrame) -> pd.DataFrame:
    """The Pareto front of memory and time, sorted by memory."""
    points = points.sort_values(["memory", "time"])
    return points[points["time"] < points["time"].cummin().shift(fill_value=np.inf)]


def _points(view: StudyView, device: str) -> pd.DataFrame:
    """Memory and time of a device's cells, and their names: the first axis that varies, and all others together."""
    first, *others = varying(view.cells, NAMED_AXES) or ["precision"]
    memory = view.memory_column(device)
    cells = view.cells[view.cells["device"] == device].dropna(subset=["samples_per_s", memory])
    cells = cells[cells[memory] > 0]
    # The columns' names head the groups of the legend.
    groups = {", ".join(map(spaced, axes)): axes for axes in ([first], others)}
    names = {words: [name_by(cell, axes) for cell in records(cells)] for words, axes in groups.items()}
    return pd.DataFrame(
        {"memory": cells[memory].astype(float), "time": 1 / cells["samples_per_s"].astype(float), **names}
    )


def _draw(axes: Axes, view: StudyView, device: str, points: pd.DataFrame) -> float:
    """Draw a panel, and give its height in inches."""
    import seaborn as sns  # takes most of a second, which no other kind needs

    _, _, colour, *shape = points.columns
    style = {"style": shape[0]} if shape and shape[0] else {}
    palette = sns.color_palette("colorblind", points[colour].nunique())
    sns.scatterplot(points, x="memory", y="time", hue=colour, **style, palette=palette, s=70, ax=axes, zorder=3)
    best = front(points)
    axes.step(best["memory"], best["time"], where="post", color=PUBLISHED_COLOUR, linewidth=1, zorder=1)
    hardware = _draw_published(axes, view, device)
    axes.set(xscale="log", yscale="log", ylabel="time of a sample")
    whole = view.memory_column(device) == "device_used_bytes"
    words = "all that is in use on the GPU" if whole else "peak that tensors needed"
    axes.set_xlabel("\n".join([f"memory: {'growth of the process' if device == BASELINE else words}", *hardware]))
    axes.set_title(view.device_title(device))
    log_ticks(axes.xaxis, BYTES)
    log_ticks(axes.yaxis, SECONDS)
    return max(PANEL_IN, 0.19 * draw_legend(axes) + 0.8)


def _draw_published(axes: Axes, view: StudyView, device: str) -> list[str]:
    """Draw a device's published points, numbered as in the legend; gives the note on their hardware."""
    published = view.published
    known = published.assign(memory=published["peak_allocated_bytes"].fillna(published["device_used_bytes"]))
    known = known[(known["device"] == device).fillna(False)].dropna(subset=["memory", "samples_per_s"])
    for number, row in enumerate(records(known), 1):
        point = (row["memory"], 1 / row["samples_per_s"])
        words = f"{number}: published, {row['label'] or 'unnamed'}"
        axes.plot(*([value] for value in point), "D", color=PUBLISHED_COLOUR, markersize=5, label=words, zorder=2)
        axes.annotate(str(number), point, (5, 3), textcoords="offset points", fontsize=8, color=PUBLISHED_COLOUR)
    hardware = known["hardware"].dropna().unique().tolist()
    return [wrapped(f"published: measured on {listed(hardware)}", NOTE_LETTERS)] if len(hardware) else []

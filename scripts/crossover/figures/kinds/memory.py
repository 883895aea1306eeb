"""Peak memory of a step below what the device has, and what the peak is for."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import BASELINE, DEVICES
from crossover.figures.panels import blank_figure, column
from crossover.figures.style import BYTES, PART_COLOURS, WIDTH_IN, use_style
from crossover.figures.view import StudyView, lines_of
from crossover.tables.frames import first_row, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import LINE_AXES, MEMORY_PARTS
from crossover.text import bytes_text, percent_text

CAPTION = (
    "Peak memory of a step, of the middle trial, stacked by what it is for; on the GPU what tensors needed (the "
    "allocator and the driver take more), on the CPU what the step held. A word stands for a cell that ended without "
    "a result."
)
MOST_LINES = 2
"""Lines of a device that are shown over many sizes; of more, those that need most."""
LEFT_IN, BAR_IN = 0.6, 0.24


def draw(view: StudyView) -> Figure:
    """A panel a device, a bar a cell; each line's sizes together."""
    view = view.on_all_cores()
    known = view.cells[view.cells.groupby("device")["peak_bytes"].transform("count") > 0]
    panels = [own for device in DEVICES if len(own := known[known["device"] == device])]
    if not panels:
        return blank_figure(view.title, "The memory of none of these cells is known.")
    use_style()
    bars = [_bars(own) for own in panels]
    heights = [1.2 + BAR_IN * len(own) for own in bars]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(WIDTH_IN, LEFT_IN + sum(heights)), squeeze=False, height_ratios=heights
    )
    figure.suptitle(view.title, x=0.01, ha="left")
    for axes, cells in zip(grid[:, 0], bars, strict=True):
        _draw(axes, view, cells)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _bars(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells to show: all of one size, else those of the lines that need most."""
    if cells["size"].nunique() == 1:
        return cells
    known = [line for line in lines_of(cells) if line["peak_bytes"].notna().any()]
    lines = sorted(known, key=lambda line: -line["peak_bytes"].max())[:MOST_LINES]
    names = [name_by(first_row(line), LINE_AXES) for line in lines]
    shown: pd.DataFrame = pd.concat([lines[place] for place in np.argsort(names)])
    return shown


def _draw(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    device = cells["device"].iloc[0]
    named = varying(cells, ["machine", "variant", "protocol", "batch_size", "precision", "execution"])
    sized = cells["size"].nunique() > 1 or not named
    rows = records(cells)
    labels = [", ".join(filter(None, [name_by(row, named), f"{row['size']:,}" * sized])) for row in rows]
    places = np.arange(len(cells))
    peak = column(cells, "peak_bytes")
    shown = np.nan_to_num(peak)
    left = np.zeros(len(cells))
    for part, words in MEMORY_PARTS.items():
        width = np.nan_to_num(column(cells, part))
        axes.barh(places, width, left=left, color=PART_COLOURS[part], height=0.7, label=words)
        left = left + width
    rest = np.clip(shown - left, 0, None)
    axes.barh(places, rest, left=left, color=PART_COLOURS["other_bytes"], height=0.7)
    for place, (own, row) in enumerate(zip(peak, rows, strict=True)):
        words = row["status"] if np.isnan(own) else bytes_text(own)
        axes.annotate(words, (shown[place], place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    if sized:
        axes.set_ylabel(rows[0]["size_name"])
    axes.set_yticks(places, labels)
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.15 * max(shown.max(), 1))
    axes.xaxis.set_major_formatter(BYTES)
    axes.set_title(_fullness(view, cells))
    what = "growth of the process at a step's peak" if device == BASELINE else "peak of what tensors needed"
    axes.set_xlabel(f"memory: {what}")


def _fullness(view: StudyView, cells: pd.DataFrame) -> str:
    """The device, how much memory it has, and the largest share of it that a cell took."""
    device = view.device_title(cells["device"].iloc[0])
    full = cells.dropna(subset=["peak_bytes", "capacity_bytes"])
    if full.empty:
        return device
    share = (full["peak_bytes"] / full["capacity_bytes"]).max()
    return f"{device}: at most {percent_text(share)} of its {bytes_text(full['capacity_bytes'].min())}"

"""Peak memory of a step over size, and what the peak is for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import DEVICES
from crossover.figures.panels import Panel, arrange, column, draw_panels, line_of
from crossover.figures.style import BYTES, INK, PART_COLOURS
from crossover.figures.view import StudyView
from crossover.tables.frames import DEVICE_LINE_AXES, first_row, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import MEMORY_PARTS
from crossover.text import bytes_text

CAPTION = (
    "Peak memory of a step, of the middle trial: on the GPU what tensors needed (the allocator and the driver take "
    "more), on the CPU what the step held. Bars: what the peak is for, at a line's largest size that is known. Black "
    "line: all that the device has. Cross, or a word: a cell that did not end well."
)
BY_DEVICE = (["device"], ["precision", "variant", "execution", "protocol", "batch_size", "workload", "machine"])
"""A panel a device, a line all else."""
NEAR = 20
"""All the memory of a device is drawn where it is less than so many times the largest peak."""


def draw(view: StudyView) -> Figure:
    """Peaks over size, where there are several, and below them a bar a line; a panel a device."""
    view = view.on_all_cores()
    known = view.cells[view.cells.groupby("device")["peak_bytes"].transform("count") > 0]
    devices = [own for device in DEVICES if len(own := known[known["device"] == device])]
    panels = _peaks(view, known) if view.cells["size"].nunique() > 1 else []
    panels += [_bars(view, own) for own in devices]
    return draw_panels(view, panels, "peak memory of a step", BYTES)


def _peaks(view: StudyView, cells: pd.DataFrame) -> list[Panel]:
    def decorate(own: pd.DataFrame, axes: Axes) -> None:
        low, high = axes.get_ylim()
        for capacity in own["capacity_bytes"].dropna().unique():
            if capacity < NEAR * high:
                axes.axhline(capacity, color=INK, linewidth=1.5, label=f"all there is: {bytes_text(capacity)}")
                axes.set_ylim(low, max(axes.get_ylim()[1], 2 * capacity))

    return arrange(view, cells, partial(line_of, "peak_bytes"), BY_DEVICE, decorate)


def _bars(view: StudyView, cells: pd.DataFrame) -> Panel:
    """A bar for each line of a device: its largest cell with a known peak, else how its largest cell ended."""
    shown = pd.concat([_largest(line) for _, line in cells.groupby(DEVICE_LINE_AXES, sort=False)])
    named = varying(shown)

    capacity = shown["capacity_bytes"].max()
    has = "" if pd.isna(capacity) else f" with {bytes_text(capacity)}"
    at = "" if "size" in named else f", at {name_by(first_row(shown), ['size'])}"
    device = view.device_title(str(shown["device"].iloc[0]))
    return Panel(f"{device}{has}: what the peak is for{at}", (), partial(_draw_bars, shown, named), bars=len(shown))


def _largest(line: pd.DataFrame) -> pd.DataFrame:
    known = line.dropna(subset=["peak_bytes"])
    return (known if len(known) else line).nlargest(1, "size")


def _draw_bars(cells: pd.DataFrame, named: list[str], axes: Axes) -> None:
    places, left = np.arange(len(cells)), np.zeros(len(cells))
    for part, words in MEMORY_PARTS.items():
        width = np.nan_to_num(column(cells, part))
        if width.any():
            axes.barh(places, width, left=left, color=PART_COLOURS[part], height=0.7, label=words)
        left = left + width
    peaks = np.nan_to_num(column(cells, "peak_bytes"))
    whole = np.where(left == 0, peaks, 0)
    if whole.any():
        axes.barh(places, whole, fill=False, edgecolor=INK, height=0.7, label="parts not known")
    for place, cell in zip(places, records(cells), strict=True):
        words = cell["status"] if cell["peak_bytes"] is None else bytes_text(cell["peak_bytes"])
        axes.annotate(words, (peaks[place], place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, [name_by(cell, named) or cell["precision"] for cell in records(cells)], fontsize=8.5)
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.2 * max(peaks.max(), 1))
    axes.xaxis.set_major_formatter(BYTES)

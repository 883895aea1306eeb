"""The figure of the peak memory of a step, and of its parts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import DEVICES
from crossover.drawing.bars import name_bars, stack_bars, write_beside
from crossover.drawing.panels import Panel, arrange, column, draw_panels, line_of
from crossover.drawing.style import BYTES, INK, PART_COLOURS
from crossover.drawing.view import Kind, StudyView
from crossover.tables.frames import SERIES_AND_DEVICE, first_row, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import MEMORY_PARTS
from crossover.text import bytes_text

BY_DEVICE_ALONE = (
    ["device"],
    ["precision", "variant", "execution", "protocol", "batch_size", "workload", "machine"],
)
"""One panel per device; all other axes separate lines."""

NEAR = 20
"""A device's capacity is drawn if it is below this multiple of the y axis's upper end."""


def _draw_memory(view: StudyView) -> Figure:
    view = view.on_all_cores()
    cells = view.cells[view.cells.groupby("device")["peak_bytes"].transform("count") > 0]
    panels: list[Panel] = []
    if view.cells["x"].nunique() > 1:
        panels += arrange(view, cells, partial(line_of, "peak_bytes"), BY_DEVICE_ALONE, _draw_capacity)
    panels += [_memory_panel(view, rows) for device in DEVICES if len(rows := cells[cells["device"] == device])]
    return draw_panels(view, panels, "peak memory of a step", BYTES)


def _draw_capacity(cells: pd.DataFrame, axes: Axes) -> None:
    low, high = axes.get_ylim()
    for capacity in cells["capacity_bytes"].dropna().unique():
        if capacity < NEAR * high:
            axes.axhline(capacity, color=INK, linewidth=1.5, label=f"capacity: {bytes_text(capacity)}")
            axes.set_ylim(low, max(axes.get_ylim()[1], 2 * capacity))


def _memory_panel(view: StudyView, cells: pd.DataFrame) -> Panel:
    """One bar per series of a device, at the largest size with a known peak."""
    shown = pd.concat([_largest(line) for _, line in cells.groupby(SERIES_AND_DEVICE, sort=False)])
    named = varying(shown)
    capacity = shown["capacity_bytes"].max()
    capacity_text = "" if pd.isna(capacity) else f" with {bytes_text(capacity)}"
    size_text = "" if "size" in named else f", at {name_by(first_row(shown), ['size'])}"
    device = view.device_title(str(shown["device"].iloc[0]))
    title = f"{device}{capacity_text}: what the peak is for{size_text}"
    return Panel(title, (), partial(_draw_memory_bars, shown, named), bars=len(shown))


def _largest(line: pd.DataFrame) -> pd.DataFrame:
    with_peak = line.dropna(subset=["peak_bytes"])
    return (with_peak if len(with_peak) else line).nlargest(1, "size")


def _draw_memory_bars(cells: pd.DataFrame, named: list[str], axes: Axes) -> None:
    parts = {words: np.nan_to_num(column(cells, part)) for part, words in MEMORY_PARTS.items()}
    ends = stack_bars(axes, parts, list(PART_COLOURS.values()), least=0)
    peaks = np.nan_to_num(column(cells, "peak_bytes"))
    whole = np.where(ends == 0, peaks, 0)
    if whole.any():
        axes.barh(np.arange(len(cells)), whole, fill=False, edgecolor=INK, height=0.7, label="parts not known")
    for rank, cell in enumerate(records(cells)):
        words = cell["status"] if cell["peak_bytes"] is None else bytes_text(cell["peak_bytes"])
        write_beside(axes, (peaks[rank], rank), words)
    name_bars(axes, [name_by(cell, named) or cell["precision"] for cell in records(cells)])
    axes.set_xlim(0, 1.2 * max(peaks.max(), 1))
    axes.xaxis.set_major_formatter(BYTES)


MEMORY = Kind(
    "Peak memory of a step, in the trial with the median peak. On the GPU, it is the memory of tensors; the allocator "
    "and the driver take more. On the CPU, it is the memory held by the step. Bars: parts of the peak, at the largest "
    "size of a line with a known peak. Black line: the device's capacity. Cross or status: a cell without a result.",
    _draw_memory,
)

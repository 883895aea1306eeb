"""Figures with stacked bars: the parts of a step's peak memory and of its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from crossover.config.words import DEVICES
from crossover.figures.panels import Floats, Panel, arrange, column, draw_panels, line_of
from crossover.figures.style import BYTES, INK, PART_COLOURS, SPLIT_COLOURS, wrapped
from crossover.figures.view import Kind, StudyView
from crossover.statistics.bottlenecks import is_hidden_by_load
from crossover.tables.frames import SERIES_AND_DEVICE, first_row, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import MEMORY_PARTS, REMEDIES, SPLIT
from crossover.text import bytes_text, number_text, seconds_text

BY_DEVICE_ALONE = (
    ["device"],
    ["precision", "variant", "execution", "protocol", "batch_size", "workload", "machine"],
)
"""One panel per device; all other axes separate lines."""
NEAR = 20
"""A device's capacity is drawn if it is below this multiple of the y axis's upper end."""
MOST_BARS = 12
"""Maximum number of bars in a panel of the time split. Of more cells, an evenly spaced selection is drawn."""
LEAST_SHARE = 0.005
NAME_LETTERS = 36


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
    ends = _stack(axes, parts, list(PART_COLOURS.values()), least=0)
    peaks = np.nan_to_num(column(cells, "peak_bytes"))
    whole = np.where(ends == 0, peaks, 0)
    if whole.any():
        axes.barh(np.arange(len(cells)), whole, fill=False, edgecolor=INK, height=0.7, label="parts not known")
    for rank, cell in enumerate(records(cells)):
        words = cell["status"] if cell["peak_bytes"] is None else bytes_text(cell["peak_bytes"])
        _write(axes, (peaks[rank], rank), words)
    _name_bars(axes, [name_by(cell, named) or cell["precision"] for cell in records(cells)])
    axes.set_xlim(0, 1.2 * max(peaks.max(), 1))
    axes.xaxis.set_major_formatter(BYTES)


def _draw_time_split(view: StudyView) -> Figure:
    cells = view.on_all_cores().cells.dropna(subset=["bottleneck"])
    rows = cells.sort_values(["protocol", "execution", "precision", "size", "variant", "batch_size", "machine"])
    panels = [_time_panel(view, cells) for device in DEVICES if len(cells := rows[rows["device"] == device])]
    return draw_panels(view, panels, "", PercentFormatter(1))


def _time_panel(view: StudyView, rows: pd.DataFrame) -> Panel:
    shown = rows.iloc[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_BARS)).round().astype(int))]
    title = f"{view.device_title(str(rows['device'].iloc[0]))}: share of a step's time"
    named = varying(rows) or ["size"]
    names = [
        wrapped(f"{name_by(row, named)}: {seconds_text(row['step_time_s'])}", NAME_LETTERS) for row in records(shown)
    ]
    text_rows = 1 + max(name.count("\n") for name in names)
    return Panel(title, (), partial(_draw_time_bars, shown, names), bars=len(shown) * text_rows)


def _draw_time_bars(rows: pd.DataFrame, names: list[str], axes: Axes) -> None:
    shares = {part: np.nan_to_num(column(rows, f"{part}_share")) for part in SPLIT}
    _stack(axes, {SPLIT[part]: share for part, share in shares.items()}, list(SPLIT_COLOURS.values()), LEAST_SHARE)
    starts = dict(zip(SPLIT, np.cumsum([np.zeros(len(rows)), *shares.values()], axis=0), strict=False))
    for rank, row in enumerate(records(rows)):
        if (part := row["bottleneck"]) in SPLIT:
            ends = [starts[part][rank] + column(rows, f"{part}_share_{end}")[rank] for end in ("low", "high")]
            axes.plot(np.minimum(ends, 1), [rank] * 2, color=INK, linewidth=1)
        if row["gain"] is not None and not is_hidden_by_load(row):
            _write(axes, (1, rank), f"{REMEDIES[row['remedy']]}: {number_text(row['gain'])}×")
    _name_bars(axes, names)
    axes.set_xlim(0, 1.6)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(PercentFormatter(1))


def _stack(axes: Axes, parts: Mapping[str, Floats], colours: Sequence[str], least: float) -> Floats:
    """Draw stacked bars, without the parts that are at most `least` in every bar; return the ends of the bars."""
    left = np.zeros_like(next(iter(parts.values())))
    for (words, width), colour in zip(parts.items(), colours, strict=True):
        if (width > least).any():
            axes.barh(np.arange(len(width)), width, left=left, color=colour, height=0.7, label=words)
        left = left + width
    return left


def _name_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _write(axes: Axes, point: tuple[float, float], words: str) -> None:
    axes.annotate(words, point, (4, 0), textcoords="offset points", va="center", fontsize=8)


MEMORY = Kind(
    "Peak memory of a step, in the trial with the median peak. On the GPU, it is the memory of tensors; the allocator "
    "and the driver take more. On the CPU, it is the memory held by the step. Bars: parts of the peak, at the largest "
    "size of a line with a known peak. Black line: the device's capacity. Cross or status: a cell without a result.",
    _draw_memory,
)
TIME_SPLIT = Kind(
    "Parts of a step's time. Remedies are tried one after the other, and the time that each saves is a part. The rest "
    "is the device's work, divided by the roof that explains it. Line: 95 % interval of the largest part. Right: the "
    "speed-up by the remedy, for the step without the preceding parts.",
    _draw_time_split,
    lambda tables: bool(tables.cells["bottleneck"].notna().any()),
)

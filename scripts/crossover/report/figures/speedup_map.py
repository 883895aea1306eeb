"""Map of an accelerator's speed-up over the CPU, along two axes: size, and batch size or cores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from crossover.compare.intervals import ENDS
from crossover.compare.ratios import sign_of
from crossover.config.words import BASELINE, CPU_THREADS, X_AXES, series_axes
from crossover.drawing.panels import Floats
from crossover.drawing.style import DEVICE_COLOURS, INK, WIDTH_IN, blank_figure, size_ticks, stacked_axes
from crossover.drawing.view import EACH_ALONE, Kind, StudyView
from crossover.tables.frames import first_row, headline_rows, records
from crossover.tables.labels import axis_label, name_by, varying
from crossover.text import number_text

ROW_IN, FEWEST_ROWS = 0.42, 5
OPACITY = 0.75
"""Low enough to read the numbers."""
COLOURS = LinearSegmentedColormap.from_list("sides", [DEVICE_COLOURS[BASELINE], "#FFFFFF", DEVICE_COLOURS["cuda"]])


def _draw_map(view: StudyView) -> Figure:
    second = view.study.second_axis
    ratios = _speedups(view.tables.ratios)
    if second is None or ratios.empty:
        return blank_figure(
            view.study.title, "No speed-up over the CPU was measured, or an axis has fewer than three values."
        )
    over_cores = view.x_axis == CPU_THREADS
    across, along = "baseline_threads" if over_cores else X_AXES[view.x_axis], X_AXES[second]
    panel_axes = [axis for axis in series_axes(view.x_axis) if axis != along]
    panels = [rows for _, rows in ratios.groupby([*panel_axes, "device"], sort=False)]
    named = varying(view.cells, panel_axes)
    rows = max(FEWEST_ROWS, ratios[along].nunique())
    size = (WIDTH_IN, 0.6 + len(panels) * (ROW_IN * rows + 1))
    figure, axes_of_panels = stacked_axes(view.study.title, len(panels), figsize=size)
    for axes, panel in zip(axes_of_panels, panels, strict=True):
        first = first_row(panel)
        axes.set_title(", ".join(filter(None, [view.device_title(first["device"]), name_by(first, named)])))
        points = _measured_throughout(panel) if over_cores else getattr(view.study, f"{across}s")
        _draw_cells(axes, panel[panel[across].isin(points)], across, along)
        _draw_crossovers(axes, view, first, across, along)
        cell = first_row(view.cells)
        axes.set_xlabel(axis_label({**cell, "x_axis": view.x_axis if over_cores else across}))
        axes.set_ylabel(axis_label({**cell, "x_axis": along}))
    return figure


def _speedups(ratios: pd.DataFrame) -> pd.DataFrame:
    """The speed-ups of accelerators over all cores of their host's CPU."""
    is_host = ratios["baseline_machine"] == ratios["machine"]
    return ratios[(ratios["pair"] == "device") & (ratios["baseline"] == BASELINE) & is_host]


def _measured_throughout(panel: pd.DataFrame) -> list[float]:
    """The numbers of cores that were measured at the most sizes; refinement adds others at some sizes."""
    sizes = panel.groupby("baseline_threads")["size"].nunique()
    return [float(threads) for threads in sizes.index[sizes == sizes.max()]]


def _draw_cells(axes: Axes, ratios: pd.DataFrame, across: str, along: str) -> None:
    table = ratios.pivot_table(index=along, columns=across, values="ratio")
    logs = np.log2(table.to_numpy(float))
    limit = max(1.0, float(np.nanmax(np.abs(logs))))
    x, y = table.columns.to_numpy(float), table.index.to_numpy(float)
    axes.set(xscale="log", yscale="log")
    norm = Normalize(-limit, limit)
    x_edges, y_edges = _edges(x), _edges(y)
    axes.pcolormesh(x_edges, y_edges, logs, cmap=COLOURS, norm=norm, alpha=OPACITY, edgecolors="white")
    for row in records(ratios):
        column, line = np.searchsorted(x, row[across]), np.searchsorted(y, row[along])
        (left, right), (low, high) = x_edges[column : column + 2], y_edges[line : line + 2]
        words = f"{number_text(row['ratio'], 2)}x"
        axes.annotate(words, (left, low), (5, 4), textcoords="offset points", fontsize=8)
        if not sign_of(row):
            axes.fill_between(
                [left, right], low, high, facecolor="none", edgecolor=INK, hatch="////", linewidth=0, alpha=0.35
            )
    size_ticks(axes, {tick: f"{tick:,.0f}" for tick in x.tolist()})
    axes.yaxis.set_ticks(y, [f"{tick:,.0f}" for tick in y])
    axes.yaxis.set_minor_locator(NullLocator())


def _edges(points: Floats) -> Floats:
    """Edges of the cells around points: the geometric means of neighbours. Outer cells are symmetric on a log axis."""
    logs = np.log(points)
    steps = np.diff(logs) if len(logs) > 1 else np.array([math.log(2)])
    inner = logs[:-1] + np.diff(logs) / 2
    return np.asarray(np.exp([logs[0] - steps[0] / 2, *inner, logs[-1] + steps[-1] / 2]), float)


def _draw_crossovers(axes: Axes, view: StudyView, first: dict[str, Any], across: str, along: str) -> None:
    table = view.tables.crossovers
    table = table[table["contender"] == first["device"]]
    fixed = [axis for axis in series_axes(view.x_axis) if axis != along]
    for axis in fixed:
        table = table[table[axis] == first[axis]]
    line = []
    for rows, at, marker in ((headline_rows(table), along, "o"), (headline_rows(table, second=True), across, "s")):
        is_row = at == along
        for row in records(rows.sort_values(at)):
            name = "crossover_size" if (across if is_row else along) == "size" else "crossover"
            value, low, high = (row[f"{name}{end}"] for end in ENDS)
            if value is None:
                continue
            fixed_at, ends = float(row[at]), _drawn_ends(axes.get_xlim() if is_row else axes.get_ylim(), low, high, row)
            point = (value, fixed_at) if is_row else (fixed_at, value)
            spans = (ends, [fixed_at] * 2) if is_row else ([fixed_at] * 2, ends)
            axes.plot(*spans, color=INK, linewidth=2.2)
            axes.plot(*point, marker, color="white", markeredgecolor=INK, markersize=6, zorder=4)
            line.append(point)
    if len(line) > 1:
        axes.plot(*zip(*sorted(line, key=lambda point: (point[0], -point[1])), strict=True), color=INK, linewidth=1)


def _drawn_ends(
    limits: tuple[float, float], low: float | None, high: float | None, row: dict[str, Any]
) -> list[float | None]:
    if low is None and high is None:
        return [row["crossover"]] * 2
    return [limits[0] if low is None else low, limits[1] if high is None else high]


MAP = Kind(
    "Speed-up of the accelerator over the CPU, along two axes: orange where the accelerator is faster, blue where the "
    "CPU is. Hatched: no significant difference. Circles: crossovers along a row, squares: crossovers along a column, "
    f"with their 95 % intervals. Line through them: equally fast. {EACH_ALONE}",
    _draw_map,
    lambda tables: bool(tables.crossovers["second_axis"].any()) and not _speedups(tables.ratios).empty,
    series=lambda x_axis: [axis for axis in series_axes(x_axis) if axis not in ("size", "batch_size")],
)

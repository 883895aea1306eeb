"""Figures of why a step takes its time: its parts, the roofline (Williams et al., 2009), and the wait for the host."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from crossover.config.words import COMPUTES_IN, DEVICES
from crossover.drawing.bars import NAME_LETTERS, name_bars, stack_bars, write_beside
from crossover.drawing.panels import BY_DEVICE, Panel, arrange, column, draw_legend, draw_panels, line_of
from crossover.drawing.style import (
    INK,
    PUBLISHED_COLOUR,
    SPLIT_COLOURS,
    WIDTH_IN,
    blank_figure,
    log_ticks,
    side_look,
    stacked_axes,
    worded,
    wrapped,
)
from crossover.drawing.view import Kind, StudyView
from crossover.tables.frames import SERIES_AND_DEVICE, first_row, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import REMEDIES, SERIES_AXES, SPLIT
from crossover.tables.roof_files import Roofs
from crossover.text import bytes_text, number_text, seconds_text, share_text
from crossover.topics.bottlenecks.table import is_hidden_by_load

MOST_BARS = 12
"""Maximum number of bars in a panel of the time split. Of more cells, an evenly spaced selection is drawn."""

LEAST_SHARE = 0.005


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
    stack_bars(axes, {SPLIT[part]: share for part, share in shares.items()}, list(SPLIT_COLOURS.values()), LEAST_SHARE)
    starts = dict(zip(SPLIT, np.cumsum([np.zeros(len(rows)), *shares.values()], axis=0), strict=False))
    for rank, row in enumerate(records(rows)):
        if (part := row["bottleneck"]) in SPLIT:
            ends = [starts[part][rank] + column(rows, f"{part}_share_{end}")[rank] for end in ("low", "high")]
            axes.plot(np.minimum(ends, 1), [rank] * 2, color=INK, linewidth=1)
        if row["gain"] is not None and not is_hidden_by_load(row):
            write_beside(axes, (1, rank), f"{REMEDIES[row['remedy']]}: {number_text(row['gain'])}×")
    name_bars(axes, names)
    axes.set_xlim(0, 1.6)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(PercentFormatter(1))


TIME_SPLIT = Kind(
    "Parts of a step's time. Remedies are tried one after the other, and the time that each saves is a part. The rest "
    "is the device's work, divided by the roof that explains it. Line: 95 % interval of the largest part. Right: the "
    "speed-up by the remedy, for the step without the preceding parts.",
    _draw_time_split,
    lambda tables: bool(tables.cells["bottleneck"].notna().any()),
    is_in_chart=True,
)

ROOFLINE_IN = 3.4

UNDER = 0.2
"""The x axis of a roofline extends from the lowest FLOP per byte times this factor to the highest divided by it."""


def _draw_roofline(view: StudyView) -> Figure:
    view = view.on_all_cores()
    cells = view.cells[view.cells["memory_roof_s"].notna() & (view.cells["flops_per_step"] > 0)]
    roofs = {key: Roofs.of(rows) for key, rows in view.tables.roofs.groupby(["machine", "device"])}
    groups = cells.dropna(subset=["step_time_s"]).groupby(["machine", "device"], sort=False)
    devices = {key: rows for key, rows in groups if key in roofs}
    if not devices:
        return blank_figure(view.study.title, "No cell has both a count of operations and roofs.")
    figure, axes_of_devices = stacked_axes(view.study.title, len(devices))
    for axes, (key, rows) in zip(axes_of_devices, devices.items(), strict=True):
        _draw_roofline_panel(axes, view, rows, roofs[key])
    figure.set_size_inches(WIDTH_IN, 0.5 + ROOFLINE_IN * len(devices))
    return figure


def _draw_roofline_panel(axes: Axes, view: StudyView, cells: pd.DataFrame, roofs: Roofs) -> None:
    device = str(cells["device"].iloc[0])
    colour, named = side_look(device)[0], varying(cells, SERIES_AXES)
    intensity = (cells["flops_per_step"] / cells["bytes_per_step"]).astype(float)
    rate = (cells["flops_per_step"] / cells["step_time_s"]).astype(float)
    for number, (_, line) in enumerate(cells.sort_values("size").groupby(SERIES_AND_DEVICE, sort=False)):
        x, y = intensity[line.index].to_numpy(), rate[line.index].to_numpy()
        name = name_by(first_row(line), named) if named else None
        axes.plot(x, y, marker="osDv^"[number % 5], color=colour, linewidth=1, markersize=4, label=name)
        for end in {0, len(line) - 1} if number == 0 else ():
            words = name_by(first_row(line.iloc[[end]]), ["size"])
            axes.annotate(words, (x[end], y[end]), (5, -9), textcoords="offset points", fontsize=8)
    x = np.array([intensity.min() * UNDER, intensity.max() / UNDER])
    for rank, dashes in {int(np.argmax(roofs.bandwidths)): ":", len(roofs.working_sets) - 1: "--"}.items():
        bandwidth = roofs.bandwidths[rank]
        words = f"memory, {bytes_text(roofs.working_sets[rank])}: {bytes_text(bandwidth)}/s"
        axes.plot(x, bandwidth * x, color=PUBLISHED_COLOUR, linewidth=1, linestyle=dashes, label=words)
    for precision in dict.fromkeys(COMPUTES_IN.get(name, name) for name in cells["precision"]):
        if precision in roofs.peaks:
            words = f"{precision} products: {roofs.peaks[precision] / 1e12:.3g} TFLOP/s"
            axes.axhline(roofs.peaks[precision], color=INK, linewidth=1, label=words)
    axes.set(xscale="log", yscale="log", xlim=x, xlabel="FLOP per byte", ylabel="FLOP/s")
    axes.set_ylim(rate.min() / 3, 3 * max([rate.max(), *roofs.peaks.values()]))
    axes.set_title(view.device_title(device))
    draw_legend(axes)
    log_ticks(axes.xaxis, worded(number_text))
    log_ticks(axes.yaxis, EngFormatter("FLOP/s"))


ROOFLINE = Kind(
    "Operations per second over operations per byte. Connected points: the cells of a series, by size. Lines without "
    "points: the measured peaks of the device, for memory bandwidth (slopes, by an operator's working set) and matrix "
    "products (horizontal).",
    _draw_roofline,
    lambda tables: len(tables.roofs) > 0 and bool(tables.cells["bytes_per_step"].notna().any()),
)


def _draw_host_share(view: StudyView) -> Figure:
    profiled = view.cells.groupby("device")["host_bound_share"].transform("count") > 0
    panels = arrange(view, view.cells[profiled], partial(line_of, "host_bound_share"), BY_DEVICE)
    label = "share of a step in which\nthe device waits for the host"
    return draw_panels(view, panels, label, worded(share_text), shares=True)


HOST_SHARE = Kind(
    "Share of a step's time in which the device waits for Python, dispatch or data, according to the profiler. It has "
    "a 95 % interval if several trials were profiled.",
    _draw_host_share,
    lambda tables: bool(tables.cells["host_bound_share"].notna().any()),
)

"""Cells under the roofs of their device: operations a second over operations a byte (Williams et al., 2009)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.config.words import COMPUTES_IN
from crossover.figures.panels import blank_figure, draw_legend
from crossover.figures.style import INK, PUBLISHED_COLOUR, WIDTH_IN, log_ticks, side_look, use_style, worded
from crossover.figures.view import StudyView
from crossover.tables.frames import DEVICE_LINE_AXES, first_row
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import LINE_AXES
from crossover.tables.roofs import Roofs
from crossover.tables.run_tables import RunTables
from crossover.text import bytes_text, number_text

CAPTION = (
    "Operations a second over operations a byte. Points: cells, from the smallest to the largest. Lines: the most that "
    "the device was measured to do, by memory (slopes, by what an operator touches) and by matrix products (level)."
)

PANEL_IN = 3.4
UNDER = 0.2
"""Of the least and the most operations a byte, how far the axis goes beyond."""


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return len(tables.roofs) > 0 and bool(tables.cells["bytes_per_step"].notna().any())


def draw(view: StudyView) -> Figure:
    """A panel a machine and device."""
    cells = view.cells[view.cells["memory_roof_s"].notna() & (view.cells["flops_per_step"] > 0)]
    lines = cells.dropna(subset=["step_time_s"]).groupby(["machine", "device"], sort=False)
    devices = {key: own for key, own in lines if key in set(view.tables.roofs.groupby(["machine", "device"]).groups)}
    if not devices:
        return blank_figure(view.title, "No cell has both operations and roofs.")
    use_style()
    figure, grid = plt.subplots(len(devices), 1, squeeze=False)
    figure.suptitle(view.title, x=0.01, ha="left")
    for axes, (key, own) in zip(grid[:, 0], devices.items(), strict=True):
        roofs = view.tables.roofs
        own_roofs = roofs[(roofs["machine"] == key[0]) & (roofs["device"] == key[1])]
        _draw(axes, view, own, Roofs.of(own_roofs))
    figure.set_size_inches(WIDTH_IN, 0.5 + PANEL_IN * len(devices))
    return figure


def _draw(axes: Axes, view: StudyView, cells: pd.DataFrame, roofs: Roofs) -> None:
    device = str(cells["device"].iloc[0])
    colour, named = side_look(device)[0], varying(cells, LINE_AXES)
    intensity = (cells["flops_per_step"] / cells["bytes_per_step"]).astype(float)
    rate = (cells["flops_per_step"] / cells["step_time_s"]).astype(float)
    for number, (_, line) in enumerate(cells.sort_values("size").groupby(DEVICE_LINE_AXES, sort=False)):
        x, y = intensity[line.index].to_numpy(), rate[line.index].to_numpy()
        name = name_by(first_row(line), named) if named else None
        axes.plot(x, y, marker="osDv^"[number % 5], color=colour, linewidth=1, markersize=4, label=name)
        for place in {0, len(line) - 1} if number == 0 else ():
            words = name_by(first_row(line.iloc[[place]]), ["size"])
            axes.annotate(words, (x[place], y[place]), (5, -9), textcoords="offset points", fontsize=8)
    x = np.array([intensity.min() * UNDER, intensity.max() / UNDER])
    for place, dashes in {int(np.argmax(roofs.bandwidths)): ":", len(roofs.working_sets) - 1: "--"}.items():
        slope = roofs.bandwidths[place] * x
        words = f"memory, {bytes_text(roofs.working_sets[place])}: {bytes_text(roofs.bandwidths[place])}/s"
        axes.plot(x, slope, color=PUBLISHED_COLOUR, linewidth=1, linestyle=dashes, label=words)
    for precision in dict.fromkeys(COMPUTES_IN.get(own, own) for own in cells["precision"]):
        if precision in roofs.peaks:
            words = f"{precision} products: {roofs.peaks[precision] / 1e12:.3g} TFLOP/s"
            axes.axhline(roofs.peaks[precision], color=INK, linewidth=1, label=words)
    axes.set(xscale="log", yscale="log", xlim=x, xlabel="FLOP per byte", ylabel="FLOP/s")
    axes.set_ylim(rate.min() / 3, 3 * max([rate.max(), *roofs.peaks.values()]))
    axes.set_title(view.device_title(device))
    draw_legend(axes)
    log_ticks(axes.xaxis, worded(number_text))
    log_ticks(axes.yaxis, EngFormatter("FLOP/s"))

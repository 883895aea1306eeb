"""Figure of memory in a study with one size: a bar a cell, stacked by what its peak is for."""

from __future__ import annotations

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.answers.naming import name_by, varying
from crossover.config.words import DEVICES
from crossover.figures.style import (
    CROSSOVER_COLOUR,
    DEVICE_COLOURS,
    LABEL_BOX,
    PART_COLOURS,
    bytes_text,
    device_label,
    ink,
    use_style,
)
from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS, capacities, peak_label
from crossover.tables.frames import LINE_AXES, device_name_of, records

WIDTH_IN, BAR_IN = 8.5, 0.3
NEAR = 4
"""The capacity has a place in the panel where it is less than so many times the largest peak."""


def plot_memory_bars(view: StudyView, rows: pd.DataFrame) -> Figure:
    """A panel a device, from zero; `rows` are those of `memory_rows`. A cell without a peak has its status instead."""
    use_style()
    devices = [device for device in DEVICES if device in set(rows["device"])]
    counts = [int((rows["device"] == device).sum()) for device in devices]
    figure, panels = plt.subplots(
        len(devices),
        1,
        figsize=(WIDTH_IN, 0.9 + sum(1.1 + BAR_IN * count for count in counts)),
        squeeze=False,
        layout="constrained",
        height_ratios=[1.1 + BAR_IN * count for count in counts],
    )
    figure.suptitle(view.title, x=0.01, ha="left", fontsize=13, weight="bold")
    named = varying(rows, LINE_AXES)
    for axes, device in zip(panels[:, 0], devices, strict=True):
        _draw(axes, rows[rows["device"] == device], device, named)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(PARTS), fontsize=9, frameon=False)
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, device: str, named: list[str]) -> None:
    axes.set_title(device_label(device, device_name_of(rows)))
    places = list(range(len(rows)))
    left = pd.Series(0.0, index=rows.index)
    for part, words in PARTS.items():
        axes.barh(places, rows[part].fillna(0), 0.65, left, color=PART_COLOURS[part], linewidth=0, label=words)
        left = left + rows[part].fillna(0)
    for place, cell in zip(places, records(rows), strict=True):
        peak = cell["peak_bytes"]
        if peak is not None and cell["other_bytes"] is None:
            axes.barh([place], [peak], 0.65, fill=False, edgecolor=CROSSOVER_COLOUR)
        _write(axes, place, peak, bytes_text(peak) if peak is not None else f"× {cell['status']}", device)
    axes.set_yticks(places, [name_by(cell, named) or cell["precision"] for cell in records(rows)])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    largest, limit = rows["peak_bytes"].max(), 1.25 * rows["peak_bytes"].max()
    said = [peak_label(device)]
    for capacity, whose in capacities(rows, device).items():
        near = capacity < NEAR * largest
        if near:
            axes.axvline(capacity, color=CROSSOVER_COLOUR, linewidth=1.5)
            limit = max(limit, 1.05 * capacity)
        said.append(f"{whose}, {'upright line' if near else 'beyond this axis'}: {bytes_text(capacity)}")
    axes.set_xlim(0, limit if limit > 0 else 1)
    axes.set_xlabel("; ".join(said[:2]) + "".join(f"\n{more}" for more in said[2:]), fontsize=10)
    axes.xaxis.set_major_formatter(EngFormatter("B"))


def _write(axes: Axes, place: int, peak: float | None, text: str, device: str) -> None:
    axes.annotate(
        text,
        (peak or 0, place),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color="black" if peak is not None else ink(DEVICE_COLOURS[device]),
        weight="normal" if peak is not None else "bold",
        bbox=LABEL_BOX,
    )

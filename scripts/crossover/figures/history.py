"""A figure of many runs: how the speed of each cell went, with its changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from crossover.figures.style import GUIDE_COLOUR, INK, PALETTE, WIDTH_IN, log_ticks, use_style, worded
from crossover.files import atomic_path
from crossover.statistics.history import relative_speeds
from crossover.tables.frames import first_row
from crossover.tables.labels import device_label, name_by
from crossover.tables.registry import CELL_AXES
from crossover.text import number_text


def draw_history(history: pd.DataFrame, path: Path) -> None:
    """Write a figure of the cells' speeds over runs; those that never changed are grey."""
    use_style()
    figure = _figure(history)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def cell_name(row: Mapping[str, Any], history: pd.DataFrame) -> str:
    """A cell's name among those of a history: 'hsf width, 500, GPU (NVIDIA H200)'."""
    axes = [axis for axis in CELL_AXES if axis != "device" and (axis == "study" or history[axis].nunique() > 1)]
    return ", ".join([name_by(row, axes), device_label(row["device"], row["device_name"])])


def _figure(history: pd.DataFrame) -> Figure:
    runs = history.drop_duplicates("run").sort_values("started_at", kind="stable")
    places = {name: place for place, name in enumerate(runs["run"])}
    figure, axes = plt.subplots(figsize=(WIDTH_IN, 4.5), layout="constrained")
    axes.axhline(1, color=GUIDE_COLOUR, zorder=0)
    colours = iter(PALETTE)
    for line, speeds in relative_speeds(history):
        x = [places[name] for name in line["run"]]
        if line["level"].max() == 0:
            axes.plot(x, speeds, color=GUIDE_COLOUR, linewidth=1, zorder=1)
            continue
        colour = next(colours, INK)
        axes.plot(x, speeds, "o-", color=colour, markersize=3, label=cell_name(first_row(line), history))
        for place in [x[index] for index, ratio in enumerate(line["ratio"].notna()) if ratio]:
            axes.axvline(place - 0.5, color=colour, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    log_ticks(axes.yaxis, worded(number_text))
    step = max(1, len(runs) // 12)
    names = [
        f"{str(start)[:10]}\n{str(commit or '')[:8]}" for start, commit in runs[["started_at", "code_version"]].values
    ]
    axes.set_xticks(range(0, len(runs), step), names[::step], rotation=45, ha="right")
    axes.set_ylabel("speed, relative to the first level")
    axes.set_title("Speed over runs; dotted: changes, significant over all cells and runs")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure

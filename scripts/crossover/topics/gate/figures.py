"""Figure of each cell's speed over many runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from crossover.drawing.style import GUIDE_COLOUR, INK, PALETTE, WIDTH_IN, log_ticks, use_style, worded
from crossover.files import atomic_path
from crossover.tables.frames import first_row, records
from crossover.tables.labels import device_label, name_by
from crossover.tables.registry import CELL_AXES
from crossover.text import number_text
from crossover.topics.gate.history import LINE_AXES


def cell_name(row: Mapping[str, Any], history: pd.DataFrame) -> str:
    """A cell's name in a history: 'hsf width, 500, GPU (NVIDIA H200)'."""
    axes = [axis for axis in CELL_AXES if axis != "device" and (axis == "study" or history[axis].nunique() > 1)]
    return ", ".join([name_by(row, axes), device_label(row["device"], row["device_name"])])


def draw_history(history: pd.DataFrame, path: Path) -> None:
    """Write a figure of each cell's speed over runs."""
    use_style()
    runs = records(history.drop_duplicates("run").sort_values("run_started_at", kind="stable"))
    positions = {run["run"]: position for position, run in enumerate(runs)}
    figure, axes = plt.subplots(figsize=(WIDTH_IN, 4.5), layout="constrained")
    colours = iter(PALETTE)
    for _, line in history.groupby(LINE_AXES, sort=False, dropna=False):
        x, changed = line["run"].map(positions), line["ratio"].notna()
        if not changed.any():
            axes.plot(x, line["speed"], color=GUIDE_COLOUR, linewidth=1, zorder=1)
            continue
        colour = next(colours, INK)
        axes.plot(x, line["speed"], "o-", color=colour, markersize=3, label=cell_name(first_row(line), history))
        for position in x[changed]:
            axes.axvline(position - 0.5, color=colour, linestyle=":", linewidth=1)
    axes.set_yscale("log")
    log_ticks(axes.yaxis, worded(number_text))
    step = max(1, len(runs) // 12)
    names = [f"{str(run['run_started_at'])[:10]}\n{(run['code_version'] or '')[:8]}" for run in runs]
    axes.set_xticks(range(0, len(runs), step), names[::step], rotation=45, ha="right")
    axes.set_ylabel("speed, relative to the first level")
    axes.set_title("Speed over runs; dotted: significant changes, corrected for the number of cells and runs")
    if history["ratio"].notna().any():
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    with atomic_path(path) as temporary:
        figure.savefig(temporary, bbox_inches="tight")
    plt.close(figure)

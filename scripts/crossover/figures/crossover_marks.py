"""The crossover in a figure of times."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crossover.answers.sentences import place
from crossover.figures.style import CROSSOVER_COLOUR, HALO, LABEL_BOX
from crossover.figures.views import StudyView
from crossover.tables.frames import records


def mark_crossover(axes: Axes, view: StudyView, line: dict[str, Any]) -> None:
    """A black line at the crossover of each accelerator, its value, and its 95 % interval as a whisker."""
    for found in records(view.rows(line, view.crossovers).query("status == 'bracketed'")):
        axes.axvline(found["crossover"], color=CROSSOVER_COLOUR, linewidth=1, zorder=2)
        _draw_interval(axes, view, line, found)
        axes.annotate(
            f"crossover: {place(found)}",
            (found["crossover"], 1),
            (-4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=10,
            color=CROSSOVER_COLOUR,
            bbox=LABEL_BOX,
        )


def _draw_interval(axes: Axes, view: StudyView, line: dict[str, Any], found: dict[str, Any]) -> None:
    """A whisker at the height where the lines cross, as wide as the crossover's 95 % interval."""
    low, x, high = (found[column] for column in ("crossover_low", "crossover", "crossover_high"))
    if low is None or high is None:
        return
    cells = view.cells_of(line)
    baseline = cells[cells["device"] == found["baseline"]].dropna(subset=["step_time_s"])
    logs = np.interp(np.log(x), np.log(baseline["x"].astype(float)), np.log(baseline["step_time_s"].astype(float)))
    y = float(np.exp(logs)) * (view.run_steps(line["batch_size"]) or 1)
    whisker = axes.errorbar(
        [x],
        [y],
        xerr=[[x - low], [high - x]],
        fmt="o",
        color=CROSSOVER_COLOUR,
        linewidth=2,
        markersize=4,
        capsize=6,
        zorder=6,
    )
    for part in (whisker.lines[0], *whisker.lines[1], *whisker.lines[2]):
        part.set_path_effects([*HALO])

"""What was published, in a figure of times: the runs, and where the crossover lies."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from crossover.answers.sentences import known_place
from crossover.figures.free_places import write_beside
from crossover.figures.style import DEVICE_COLOURS, PUBLISHED_COLOUR, device_label
from crossover.figures.views import StudyView


def draw_published_runs(axes: Axes, view: StudyView, line: dict[str, Any]) -> None:
    """A dotted line with hollow squares for each device and hardware."""
    for (device, _), rows in _runs(view, line).items():
        axes.plot(
            rows["size"],
            rows["run_time_s"],
            color=DEVICE_COLOURS[device],
            linestyle=":",
            linewidth=1,
            marker="s",
            markersize=6,
            fillstyle="none",
            zorder=2,
        )


def name_published_runs(axes: Axes, view: StudyView, line: dict[str, Any]) -> None:
    """Write which is which beside them, once all else is in its place."""
    for (device, hardware), rows in _runs(view, line).items():
        x, y = rows["size"].to_numpy(float), rows["run_time_s"].to_numpy(float)
        write_beside(axes, f"published {device_label(device, hardware)}", x, y, DEVICE_COLOURS[device])


def _runs(view: StudyView, line: dict[str, Any]) -> dict[tuple[str, str], pd.DataFrame]:
    groups = view.published_runs(line).groupby(["device", "hardware"], sort=False)
    return {(str(device), str(hardware)): rows for (device, hardware), rows in groups}


def mark_published_crossover(axes: Axes, view: StudyView) -> None:
    """A dashed line, or a band where it is known to lie between two sizes."""
    if view.published_crossover is None:
        return
    low, high = view.published_crossover
    if low == high:
        axes.axvline(low, color=PUBLISHED_COLOUR, linestyle="--", linewidth=1, zorder=1)
        text = f"published: {known_place(view.x_axis, low)}"
    else:
        axes.axvspan(low, high, color=PUBLISHED_COLOUR, alpha=0.12, linewidth=0, zorder=0)
        text = f"published: {known_place(view.x_axis, low)} to {known_place(view.x_axis, high)}"
    middle = (low * high) ** 0.5
    axes.annotate(
        text,
        (middle, 0),
        (0 if low < high else 4, 4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=PUBLISHED_COLOUR,
        ha="center" if low < high else "left",
        va="bottom",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
        zorder=5,
    )

"""Figures of one study: time over size, and speed-up over size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    Formatter,
    FuncFormatter,
    NullFormatter,
    NullLocator,
    StrMethodFormatter,
)

from crossover.analysis.clear_labels import Label, write_clear
from crossover.analysis.crossover_marks import mark_crossover
from crossover.analysis.curves import draw_hollow
from crossover.analysis.guides import draw_guide, guide_of
from crossover.analysis.log_ticks import reach_ticks_beside_1, tick_values
from crossover.analysis.many_lines import plot_many_speedups, plot_many_times
from crossover.analysis.naming import varying
from crossover.analysis.panels import spaced_out
from crossover.analysis.sentences import axis_words, line_words
from crossover.analysis.status_marks import (
    FIRST_PT,
    ROW_PT,
    StatusMark,
    draw_status_marks,
    make_room,
    status_marks,
)
from crossover.analysis.style import (
    CROSSOVER_COLOUR,
    DEVICE_COLOURS,
    DEVICE_WORDS,
    LABEL_BOX,
    PUBLISHED_COLOUR,
    count_text,
    device_label,
    short_name,
    use_style,
)
from crossover.analysis.summary import speedups
from crossover.analysis.tables import LINE_AXES
from crossover.analysis.views import StudyView
from crossover.records import BASELINE

MOST_SINGLE = 2
"""With more lines than these, a panel holds several."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def plot_times(view: StudyView) -> Figure:
    """Time over size, log-log: one line a device, every trial a dot, intervals, the published figures beside ours."""
    if len(view.lines()) > MOST_SINGLE or view.has_fewer_cores or view.has_machines:
        return plot_many_times(view)
    figure, panels = _panels(view)
    published = []
    for axes, line in zip(panels, view.lines(), strict=True):
        _mark_published_crossover(axes, view)
        published.append(_draw_published_runs(axes, view, line))
        for device, cells in view.cells_of(line).groupby("device", sort=False):
            _draw_device(axes, view, line, str(device), cells)
        mark_crossover(axes, view, line)
        _finish_y(axes, EngFormatter("s") if view.steps_per_run is None else StrMethodFormatter("{x:,g}"))
        _finish_x(axes, view, line)
        _draw_marks(axes, view, _marks(view, line))
    panels[0].set_ylabel(view.time_label())
    if any(published):
        figure.draw_without_rendering()  # lays the panels out
        for axes, labels in zip(panels, published, strict=True):
            write_clear(axes, labels)
    return figure


def plot_speedups(view: StudyView) -> Figure:
    """Time on the CPU over time on each accelerator, log-log, with the line at 1."""
    if len(view.lines()) > MOST_SINGLE or view.has_fewer_cores or view.has_machines:
        return plot_many_speedups(view)
    figure, panels = _panels(view)
    for axes, line in zip(panels, view.lines(), strict=True):
        trials = view.trials_of(line)
        axes.axhline(1, color=CROSSOVER_COLOUR, linewidth=0.8)
        axes.annotate(
            "equal", (0, 1), (2, 3), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=9
        )
        for device in trials["device"].unique():
            if device != BASELINE:
                _draw_speedup(axes, trials, str(device), view.refined(line))
        _mark_published_crossover(axes, view)
        _finish_y(axes, StrMethodFormatter("{x:g}×"))
        _finish_x(axes, view, line)
        _draw_marks(axes, view, _marks(view, line, said=True))
    panels[0].set_ylabel("speed-up over the CPU")
    reach_ticks_beside_1(panels)
    return figure


def _panels(view: StudyView) -> tuple[Figure, list[Axes]]:
    use_style()
    count = len(view.lines())
    figure, panels = plt.subplots(
        1, count, figsize=(8 if count == 1 else 6.8 * count, 4.8), sharey=True, squeeze=False, layout="constrained"
    )
    figure.suptitle(view.title, x=0.01, ha="left", fontsize=13, weight="bold")
    for axes, line in zip(panels[0], view.lines(), strict=True):
        axes.set_title(line_words(line, varying(view.crossovers, LINE_AXES)), pad=10)
        axes.set_xscale("log")
        axes.set_yscale("log")
    return figure, list(panels[0])


def _draw_device(axes: Axes, view: StudyView, line: dict[str, Any], device: str, cells: pd.DataFrame) -> None:
    colour = DEVICE_COLOURS[device]
    scale = view.run_steps(line["batch_size"]) or 1
    timed = cells.dropna(subset=["step_time_s"])
    if timed.empty:
        return
    x, y = timed["x"].to_numpy(float), timed["step_time_s"].to_numpy(float) * scale
    axes.plot(x, y, color=colour, linewidth=1.8, zorder=3)
    draw_guide(axes, guide_of(view, line, cells, scale), colour)
    intervals = timed.dropna(subset=["step_time_low_s"])
    axes.fill_between(
        intervals["x"].to_numpy(float),
        intervals["step_time_low_s"].to_numpy(float) * scale,
        intervals["step_time_high_s"].to_numpy(float) * scale,
        color=colour,
        alpha=0.18,
        linewidth=0,
    )
    trials = view.trials_of(line)
    trials = trials[trials["device"] == device].dropna(subset=["step_time_s"])
    refined = view.refined(line)
    first = trials[~trials["x"].isin(refined)]
    axes.scatter(first["x"], first["step_time_s"] * scale, s=12, color=colour, alpha=0.65, linewidth=0, zorder=4)
    seconds = trials["step_time_s"].to_numpy(float) * scale
    draw_hollow(axes, trials["x"].to_numpy(float), seconds, refined, "o", colour, size=3)
    _label_end(axes, x, y, device, cells["device_name"], colour)


def _marks(view: StudyView, line: dict[str, Any], said: bool = False) -> list[StatusMark]:
    """The cells of a line that did not end well; `said`: by the name of their device too."""
    cells = view.cells_of(line)
    devices = dict.fromkeys(cells["device"])
    return [
        mark
        for device in devices
        for mark in status_marks(
            cells[cells["device"] == device], DEVICE_COLOURS[device], DEVICE_WORDS[device] if said else ""
        )
    ]


def _draw_marks(axes: Axes, view: StudyView, marks: list[StatusMark]) -> None:
    """Draw the marks below the points, and above the words of the published crossover."""
    first_pt = FIRST_PT if view.published_crossover is None else FIRST_PT + ROW_PT
    make_room(axes, marks, first_pt)
    draw_status_marks(axes, marks, first_pt)


def _label_end(axes: Axes, x: Floats, y: Floats, device: str, names: pd.Series, colour: str) -> None:
    """Name the device at the end of its line, on two lines, so that the label takes little of the figure's width."""
    name = names.dropna().iloc[0] if names.notna().any() else ""
    axes.annotate(
        f"{DEVICE_WORDS[device]}\n{short_name(name)}".strip(),
        (x[-1], y[-1]),
        (7, 0),
        textcoords="offset points",
        color=colour,
        va="center",
        fontsize=10,
        bbox=LABEL_BOX,
    )


def _draw_published_runs(axes: Axes, view: StudyView, line: dict[str, Any]) -> list[Label]:
    """Draw the published runs beside a line of ours; gives their names, to be written when all is drawn."""
    labels = []
    for (device, hardware), rows in view.published_runs(line).groupby(["device", "hardware"], sort=False):
        x, y = rows["size"].to_numpy(float), rows["run_time_s"].to_numpy(float)
        colour = DEVICE_COLOURS[str(device)]
        axes.plot(x, y, color=colour, linestyle=":", linewidth=1, marker="s", markersize=6, fillstyle="none", zorder=2)
        name = f"published {device_label(str(device), str(hardware))}"
        labels.append(Label(name, list(zip(x.tolist(), y.tolist(), strict=True)), colour))
    return labels


def _mark_published_crossover(axes: Axes, view: StudyView) -> None:
    if view.published_crossover is None:
        return
    low, high = view.published_crossover
    if low == high:
        axes.axvline(low, color=PUBLISHED_COLOUR, linestyle="--", linewidth=1, zorder=1)
        text = f"published: {low:,.0f}"
    else:
        axes.axvspan(low, high, color=PUBLISHED_COLOUR, alpha=0.12, linewidth=0, zorder=0)
        text = f"published: {low:,.0f} to {high:,.0f}"
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


def _draw_speedup(axes: Axes, trials: pd.DataFrame, device: str, refined: set[float]) -> None:
    colour = DEVICE_COLOURS[device]
    ratios = speedups(trials, BASELINE, device)
    if ratios.empty:
        return
    x, ratio = ratios["x"].to_numpy(float), ratios["speedup"].to_numpy(float)
    axes.plot(x, ratio, color=colour, linewidth=1.8, marker="o", markersize=4)
    draw_hollow(axes, x, ratio, refined, "o", colour)
    axes.fill_between(x, ratios["low"], ratios["high"], color=colour, alpha=0.18, linewidth=0)
    _label_end(axes, x, ratio, device, trials.loc[trials["device"] == device, "device_name"], colour)


def _finish_y(axes: Axes, formatter: Formatter) -> None:
    tick_values(axes.yaxis, formatter, most=11)


def _finish_x(axes: Axes, view: StudyView, line: dict[str, Any]) -> None:
    axes.set_xlabel(axis_words(line))
    axes.xaxis.set_minor_formatter(NullFormatter())
    sizes: Any = axes
    if view.x_axis == "parameters":
        tick_values(axes.xaxis, FuncFormatter(lambda value, _: count_text(value)))
        sizes = axes.secondary_xaxis("top")
        sizes.set_xlabel(str(line["size_name"]))
    points = view.cells_of(line).dropna(subset=["x"]).drop_duplicates("size").set_index("x")["size"]
    words = points.map("{:,}".format)
    share = max(0.04, 0.022 * max(map(len, words), default=0))
    kept = spaced_out(points.index.tolist(), share, last=view.refined(line))
    sizes.set_xticks(kept, [words[x] for x in kept])
    sizes.xaxis.set_minor_locator(NullLocator())

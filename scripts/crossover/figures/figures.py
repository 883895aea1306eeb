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

from crossover.answers.naming import varying
from crossover.answers.sentences import axis_words, line_words
from crossover.answers.wording import count_text
from crossover.config.words import BASELINE
from crossover.figures.crossover_marks import mark_crossover
from crossover.figures.curves import Tag, draw_band, draw_hollow
from crossover.figures.guides import draw_guide, guide_of
from crossover.figures.line_ends import device_end, write_ends
from crossover.figures.log_ticks import reach_ticks_beside_1, tick_values
from crossover.figures.many_lines import plot_many_speedups, plot_many_times
from crossover.figures.panels import keep_in_view, spaced_out
from crossover.figures.published_marks import draw_published_runs, mark_published_crossover, name_published_runs
from crossover.figures.status_marks import (
    FIRST_PT,
    ROW_PT,
    StatusMark,
    draw_status_marks,
    make_room,
    status_marks,
)
from crossover.figures.style import (
    CROSSOVER_COLOUR,
    DEVICE_COLOURS,
    DEVICE_WORDS,
    use_style,
)
from crossover.figures.views import StudyView
from crossover.statistics.summary import speedups
from crossover.tables.frames import LINE_AXES

MOST_SINGLE = 2
"""With more lines than these, a panel holds several."""

BAND_ALPHA = 0.18


def plot_times(view: StudyView) -> Figure:
    """Time over size, log-log: one line a device, every trial a dot, intervals, the published figures beside ours."""
    if len(view.lines()) > MOST_SINGLE or view.has_fewer_cores or view.has_machines:
        return plot_many_times(view)
    figure, panels = _panels(view)
    ends: list[list[Tag]] = [[] for _ in panels]
    for axes, line, own in zip(panels, view.lines(), ends, strict=True):
        mark_published_crossover(axes, view)
        draw_published_runs(axes, view, line)
        for device, cells in view.cells_of(line).dropna(subset=["step_time_s"]).groupby("device", sort=False):
            own.append(_draw_device(axes, view, line, str(device), cells))
        mark_crossover(axes, view, line)
        _finish_y(axes, EngFormatter("s") if view.steps_per_run is None else StrMethodFormatter("{x:,g}"))
        _finish_x(axes, view, line)
    panels[0].set_ylabel(view.time_label())
    keep_in_view(panels[0], [time_s for line in view.lines() for time_s in _run_times_s(view, line)])
    _finish(figure, view, panels, ends)
    figure.draw_without_rendering()  # the names of the devices have taken some of the width
    for axes, line in zip(panels, view.lines(), strict=True):
        name_published_runs(axes, view, line)
    return figure


def plot_speedups(view: StudyView) -> Figure:
    """Time on the CPU over time on each accelerator, log-log, with the line at 1."""
    if len(view.lines()) > MOST_SINGLE or view.has_fewer_cores or view.has_machines:
        return plot_many_speedups(view)
    figure, panels = _panels(view)
    ends: list[list[Tag]] = [[] for _ in panels]
    points = [1.0]
    for axes, line, own in zip(panels, view.lines(), ends, strict=True):
        trials = view.trials_of(line)
        axes.axhline(1, color=CROSSOVER_COLOUR, linewidth=0.8)
        axes.annotate(
            "equal", (0, 1), (2, 3), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=9
        )
        for device in trials["device"].unique():
            ratios = speedups(trials, BASELINE, device) if device != BASELINE else pd.DataFrame()
            if len(ratios):
                points += ratios["speedup"].tolist()
                own.append(_draw_speedup(axes, trials, str(device), ratios, view.refined(line)))
        mark_published_crossover(axes, view)
        _finish_y(axes, StrMethodFormatter("{x:g}×"))
        _finish_x(axes, view, line)
    panels[0].set_ylabel("speed-up over the CPU")
    keep_in_view(panels[0], points)
    reach_ticks_beside_1(panels)
    _finish(figure, view, panels, ends, said=True)
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


def _finish(figure: Figure, view: StudyView, panels: list[Axes], ends: list[list[Tag]], said: bool = False) -> None:
    """Draw the marks below the points, then write the words that give way to each other."""
    first_pt = FIRST_PT if view.published_crossover is None else FIRST_PT + ROW_PT
    for axes, line in zip(panels, view.lines(), strict=True):
        marks = _marks(view, line, said)
        make_room(axes, marks, first_pt)
        draw_status_marks(axes, marks, first_pt)
    figure.draw_without_rendering()  # gives the panels their place
    for axes, own in zip(panels, ends, strict=True):
        write_ends(axes, own)


def _run_times_s(view: StudyView, line: dict[str, Any]) -> list[float]:
    """The times of a line's trials as they are drawn, and the published ones."""
    scale = view.run_steps(line["batch_size"]) or 1
    return [*(view.trials_of(line)["step_time_s"].dropna() * scale), *view.published_runs(line)["run_time_s"]]


def _draw_device(axes: Axes, view: StudyView, line: dict[str, Any], device: str, cells: pd.DataFrame) -> Tag:
    """Draw a device's line; the cells have times."""
    colour = DEVICE_COLOURS[device]
    scale = view.run_steps(line["batch_size"]) or 1
    x, y = cells["x"].to_numpy(float), cells["step_time_s"].to_numpy(float) * scale
    axes.plot(x, y, color=colour, linewidth=1.8, zorder=3)
    draw_guide(axes, guide_of(view, line, cells, scale), colour)
    low, high = (cells[f"step_time_{end}_s"].to_numpy(float, na_value=np.nan) * scale for end in ("low", "high"))
    draw_band(axes, x, low, high, colour, BAND_ALPHA)
    trials = view.trials_of(line)
    trials = trials[trials["device"] == device].dropna(subset=["step_time_s"])
    refined = view.refined(line)
    first = trials[~trials["x"].isin(refined)]
    axes.scatter(first["x"], first["step_time_s"] * scale, s=12, color=colour, alpha=0.65, linewidth=0, zorder=4)
    seconds = trials["step_time_s"].to_numpy(float) * scale
    draw_hollow(axes, trials["x"].to_numpy(float), seconds, refined, "o", colour, size=3)
    return device_end(x, y, device, cells["device_name"], colour)


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


def _draw_speedup(axes: Axes, trials: pd.DataFrame, device: str, ratios: pd.DataFrame, refined: set[float]) -> Tag:
    colour = DEVICE_COLOURS[device]
    x, ratio = ratios["x"].to_numpy(float), ratios["speedup"].to_numpy(float)
    axes.plot(x, ratio, color=colour, linewidth=1.8, marker="o", markersize=4)
    draw_hollow(axes, x, ratio, refined, "o", colour)
    low, high = (ratios[end].to_numpy(float, na_value=np.nan) for end in ("low", "high"))
    draw_band(axes, x, low, high, colour, BAND_ALPHA)
    return device_end(x, ratio, device, trials.loc[trials["device"] == device, "device_name"], colour)


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

"""Time over size: one line a device and setting, with the published times and crossovers beside ours."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.figures.panels import (
    Line,
    Look,
    arrange,
    column,
    draw_panels,
    line_of,
    looks_of,
    mark_published_crossover,
    reach,
)
from crossover.figures.style import DEVICE_COLOURS, INK, PUBLISHED_COLOURS, SECONDS, published_look
from crossover.figures.view import StudyView, published_series
from crossover.tables.frames import first_row, on_all_cores, records, rows_with
from crossover.tables.labels import device_label, name_by, varying
from crossover.tables.registry import CELL_AXES, LINE_AXES
from crossover.text import place_text

CAPTION = (
    "Time over size, both axes logarithmic. Lines: cells, with their 95 % interval over trials; dots: trials; hollow:"
    " sizes that refinement added; upright line: the crossover, with its 95 % interval. Grey, or dotted and hollow:"
    " published. Dashed: measured elsewhere. Cross: a size that ended without a result."
)
MOST_DOTTED = 3
"""With more lines in a panel, the trials' dots would hide them."""


def draw(view: StudyView) -> Figure:
    """Time of a step, or of the published run where the study has one."""
    axes = [axis for axis in CELL_AXES if axis != "size"]
    crowded = view.cells.groupby(["protocol", "batch_size", "execution"])[["precision", "device"]].nunique()
    dotted = bool((crowded.prod(axis=1) <= MOST_DOTTED).all()) and not view.has_machines

    def maker(cells: pd.DataFrame, name: str, look: Look) -> Line | None:
        first = first_row(cells)
        scale = view.run_steps(first["batch_size"]) or 1
        trials = rows_with(view.tables.measurements, axes, first).dropna(subset=["step_time_s"])
        dots = (column(trials, "x"), column(trials, "step_time_s") * scale) if dotted else None
        return line_of("step_time_s", cells, name, look, scale, dots)

    def decorate(cells: pd.DataFrame, axes: Axes) -> None:
        _mark_crossovers(axes, view, cells)
        mark_published_crossover(axes, view)
        _draw_published(axes, view, cells)
        _draw_references(axes, view, cells)

    ticks = SECONDS if view.spec["steps_per_run"] is None else StrMethodFormatter("{x:,g}")
    return draw_panels(
        view,
        arrange(view, view.cells, maker, decorate=decorate),
        view.time_label(),
        ticks,
        x_label=view.x_label_with_devices(),
    )


def _mark_crossovers(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    """A line at each crossover of the panel's lines, and a band for its interval."""
    looks = looks_of(view.cells, ["precision", "variant", "machine"])
    varied = [axis for axis in ("machine", "variant", "precision") if view.cells[axis].nunique() > 1]
    for row in records(view.tables.crossovers.merge(cells[LINE_AXES].drop_duplicates())):
        colour = looks(row).colour if varied else INK
        low, high = row["crossover_low"], row["crossover_high"]
        words = f"crossover {place_text(row['crossover'], view.x_label())}"
        if low is not None and high is not None:
            words += f" ({' to '.join(place_text(end, view.x_label()) for end in (low, high))})"
            axes.axvspan(low, high, color=colour, alpha=0.1, linewidth=0, zorder=0)
        if varied:
            words = f"{words}, {name_by(row, varied)}"
        axes.axvline(row["crossover"], color=colour, linewidth=1.2, zorder=2, label=words)


def _draw_published(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    """Published times, hollow on dotted lines, a series a shade of its device's colour; it need not be measured."""
    if view.x_axis != "size":
        return
    metric = "step_time_s" if view.spec["steps_per_run"] is None else "run_time_s"
    runs = view.published_on(first_row(cells), "size", "device", metric)
    for series in published_series(runs, ["size"]):
        device, hardware = series.runs[0]["device"], series.runs[0]["hardware"]
        colour, marker = published_look(PUBLISHED_COLOURS[device], series.rank)
        reach(axes, [run[metric] for run in series.runs])
        axes.plot(
            [float(run["size"]) for run in series.runs],
            [run[metric] for run in series.runs],
            color=colour,
            linestyle=":",
            linewidth=1,
            marker=marker,
            markersize=6,
            fillstyle="none",
            zorder=2,
            label=f"published: {', '.join(filter(None, [device_label(device, hardware), series.words]))}",
        )


def _draw_references(axes: Axes, view: StudyView, cells: pd.DataFrame) -> None:
    """Times of machines measured elsewhere as dashed lines, in the colour of their device."""
    shared = [axis for axis in LINE_AXES if axis != "machine"]
    rows = view.tables.reference_cells.merge(cells[shared].drop_duplicates()).dropna(subset=["step_time_s"])
    for _, line in on_all_cores(rows).sort_values("x").groupby([*LINE_AXES, "device"], sort=False):
        first = first_row(line)
        times_s = line["step_time_s"] * (view.run_steps(first["batch_size"]) or 1)
        reach(axes, times_s.tolist())
        several = [axis for axis in varying(view.cells, shared) if axis in ("precision", "variant")]
        words = [device_label(first["device"], first["device_name"]), *([name_by(first, several)] if several else [])]
        axes.plot(
            line["x"],
            times_s,
            color=DEVICE_COLOURS[first["device"]],
            linestyle="--",
            linewidth=1,
            zorder=2,
            label=f"measured elsewhere ({first['machine']}): {', '.join(words)}",
        )

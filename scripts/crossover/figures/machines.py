"""Time or money of each machine over size, with the name of each line at its right end."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.config.words import HERE
from crossover.figures.panels import DASHES, MARKERS, Line, Look, arrange, column, draw_panels
from crossover.figures.style import DEVICE_COLOURS, worded
from crossover.figures.view import Kind, StudyView
from crossover.statistics.intervals import ENDS
from crossover.statistics.machines import MONEY, is_ranking, line_axes, shown_column
from crossover.tables.frames import first_row, records, with_x
from crossover.tables.labels import machine_side
from crossover.text import money_text, seconds_text

LABEL_GAP = 0.07
"""Minimum distance of two labels, as a share of the panel's height."""


def _draw_machines(view: StudyView) -> Figure:
    """The cost by which machines are ranked, over the x axis: one panel per line, one curve per device and machine."""
    table = with_x(view.tables.machines, view.x_axis)
    # Either all lines are ranked by time, or all by money.
    table = table[table["ranked_by"] == table["ranked_by"].max()]
    machines = [HERE, *(name for name in table["machine"].unique() if name != HERE)]

    def maker(rows: pd.DataFrame, _name: str, _look: Look) -> Line:
        first, x = first_row(rows), column(rows, "x")
        rank = machines.index(first["machine"])
        look = Look(DEVICE_COLOURS[first["device"]], DASHES[rank % len(DASHES)], MARKERS[rank % len(MARKERS)])
        y, low, high = (column(rows, shown_column(first).format(end)) for end in ENDS)
        return Line("_", look, x, y, low, high, refined=x[:0])  # the line is labelled at its end, not in a legend

    per_panel = [axis for axis in line_axes(view.x_axis) if axis != "study"]
    panels = arrange(view, table, maker, (per_panel, ["machine", "device"]), _name_lines)
    of_run, by_money = table["steps"].notna().any(), (table["ranked_by"] == MONEY).any()
    what = "run, without its start-up" if of_run else "million steps" if by_money else "step"
    label = f"{view.currency or 'money'} for a {what}" if by_money else f"time of a {what}"
    return draw_panels(view, panels, label, worded(money_text if by_money else seconds_text))


def _name_lines(rows: pd.DataFrame, axes: Axes) -> None:
    """Write each line's name to the right of its last point, moved up if it would overlap another name."""
    last = records(rows[rows["x"] == rows["x"].max()])
    low, high = map(math.log, axes.get_ylim())
    height = -math.inf
    for row in sorted(last, key=lambda row: row[shown_column(row).format("")]):
        value = row[shown_column(row).format("")]
        height = max((math.log(value) - low) / (high - low), height + LABEL_GAP)
        words = machine_side(row["device"], row["machine"])
        colour = DEVICE_COLOURS[row["device"]]
        axes.text(1.01, height, words, color=colour, va="center", fontsize=9, transform=axes.transAxes)


MACHINES = Kind(
    "Time, or money if the config gives prices, of a step (or of the study's run without start-up) on each device of "
    "each machine, with the 95 % interval over trials. The interval of a reference, measured "
    "elsewhere, includes how hosts of its kind differ.",
    _draw_machines,
    lambda tables: is_ranking(tables.machines),
)

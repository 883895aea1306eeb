"""The figure of the cost of a step or run on each device of each machine."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.compare.intervals import ENDS
from crossover.config.words import HERE
from crossover.drawing.panels import DASHES, MARKERS, Line, Look, arrange, column, draw_panels
from crossover.drawing.style import side_look, worded
from crossover.drawing.view import Kind, StudyView
from crossover.tables.frames import first_row, records, with_x
from crossover.tables.labels import machine_side
from crossover.text import money_text, seconds_text
from crossover.topics.ranking.table import MONEY, is_ranking, ranking_axes, shown_column

LABEL_GAP = 0.07
"""Minimum distance between the names of two lines, as a share of the panel's height."""


def _draw_machines(view: StudyView) -> Figure:
    table = with_x(view.tables.machines, view.x_axis)
    # Show times if any series is ranked by time, so that all panels have the same unit.
    table = table[table["ranked_by"] == table["ranked_by"].max()]
    machines = [HERE, *(name for name in table["machine"].unique() if name != HERE)]

    def make_line(rows: pd.DataFrame, _name: str, _look: Look) -> Line:
        first, x = first_row(rows), column(rows, "x")
        rank = machines.index(first["machine"])
        look = Look(side_look(first["device"])[0], DASHES[rank % len(DASHES)], MARKERS[rank % len(MARKERS)])
        y, low, high = (column(rows, shown_column(first).format(end)) for end in ENDS)
        # A label that starts with an underscore is not in the legend; `_name_lines` writes the name beside the line.
        return Line("_", look, x, y, low, high, refined=x[:0])

    per_panel = [axis for axis in ranking_axes(view.x_axis) if axis != "study"]
    panels = arrange(view, table, make_line, (per_panel, ["machine", "device"]), _name_lines)
    per_run, by_money = table["steps"].notna().any(), (table["ranked_by"] == MONEY).any()
    work = "run, without its start-up" if per_run else "million steps" if by_money else "step"
    label = f"{view.currency or 'money'} for a {work}" if by_money else f"time of a {work}"
    return draw_panels(view, panels, label, worded(money_text if by_money else seconds_text))


def _name_lines(rows: pd.DataFrame, axes: Axes) -> None:
    """Write each line's name to the right of its last point, without overlaps."""
    last = records(rows[rows["x"] == rows["x"].max()])
    low, high = map(math.log, axes.get_ylim())
    height = -math.inf
    for row in sorted(last, key=lambda row: row[shown_column(row).format("")]):
        value = row[shown_column(row).format("")]
        height = max((math.log(value) - low) / (high - low), height + LABEL_GAP)
        words = machine_side(row["device"], row["machine"])
        colour = side_look(row["device"])[0]
        axes.text(1.01, height, words, color=colour, va="center", fontsize=9, transform=axes.transAxes)


MACHINES = Kind(
    "Time of a step on each device of each machine, or its price if the config gives prices, with the 95 % interval "
    "over trials. If the study has a run, the figure shows the run without its start-up. A GPU measured elsewhere is "
    "beside its own host's CPU; the intervals of such a host include the variation between hosts of its kind.",
    _draw_machines,
    lambda tables: is_ranking(tables.machines),
)

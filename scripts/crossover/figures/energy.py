"""Figure of what a step costs beside time: energy where it was measured, money where the config gives prices."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter

from crossover.figures.curves import Looks
from crossover.figures.line_panels import Line, plot_line_panels
from crossover.figures.over_size import line_panels, lost_words, marks_of, x_label, x_words
from crossover.figures.panels import blank_figure
from crossover.figures.style import ink, money_text
from crossover.figures.views import StudyView
from crossover.statistics.costs import with_costs
from crossover.statistics.summary import time_over_trials
from crossover.tables.frames import CELL_AXES, DEVICE_LINE_AXES, first_row, rows_with

NO_COST = "No energy was measured (that takes effort.timed_min_s of 10 or more), and no price_per_hour is set."


def plot_energy(view: StudyView) -> Figure:
    """Energy and money of a step over size, log-log, with 95 % intervals over trials; a panel for each known one."""
    view = view.on_all_cores()
    costs = cell_costs(view)
    panels = []
    for cost, (label, ticks) in axes_of(view).items():
        known = costs[costs["cost"] == cost]
        if len(known):
            own = line_panels(view, view.cells, partial(_lines, known))
            titles = [", ".join(words for words in (cost, panel.title) if words) for panel in own]
            panels += [
                replace(panel, title=title, y_label=label, y_ticks=ticks)
                for panel, title in zip(own, titles, strict=True)
            ]
    if not panels:
        return blank_figure(view.title, NO_COST)
    words = x_words(view, view.cells)
    return plot_line_panels(view.title, panels, x_label(view), "", EngFormatter(), words)


def axes_of(view: StudyView) -> dict[str, tuple[str, Formatter]]:
    """The label and the ticks of each cost's axis."""
    unit = view.currency or "money"
    return {
        "energy": ("energy of a step", EngFormatter("J")),
        "money": (f"{unit} for\na million steps", FuncFormatter(lambda value, _: money_text(value))),
    }


MILLION = 10**6


def cell_costs(view: StudyView) -> pd.DataFrame:
    """One row a cell and cost that an ok trial gives: its axes, x, cost, mean, low, high and trials; sizes ascending.

    Energy is in joules of a step, money of a million steps, which is a number that can be read.
    """
    priced = view.with_x(with_costs(view.measurements, view.price_per_hour))
    scales = {"energy": 1, "money": MILLION}
    rows = []
    for key, own in priced.groupby(CELL_AXES, sort=False):
        for cost, scale in scales.items():
            values = (own[cost].dropna() * scale).tolist()
            if values:
                found = time_over_trials(values)
                ends = {"mean": found.mean_s, "low": found.low_s, "high": found.high_s, "trials": len(values)}
                rows.append({**dict(zip(CELL_AXES, key, strict=True)), "x": own["x"].iloc[0], "cost": cost} | ends)
    return pd.DataFrame(rows, columns=[*CELL_AXES, "x", "cost", "mean", "low", "high", "trials"]).sort_values("x")


def _lines(known: pd.DataFrame, cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
    first = first_row(cells)
    found = rows_with(known, DEVICE_LINE_AXES, first)
    x, y, low, high = (found[column].to_numpy(float, na_value=np.nan) for column in ("x", "mean", "low", "high"))
    look, said = looks.of(first), lost_words(cells) or ("" if len(found) else ": not known")
    return [Line(name + said, look, x, y, low, high, marks=marks_of(cells, ink(look.colour)) if len(x) else ())]

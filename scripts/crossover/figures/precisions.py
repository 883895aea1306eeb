"""Figure of precisions and executions: how much faster each is than the plain one, on the same device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.figures.curves import Looks
from crossover.figures.line_panels import Line
from crossover.figures.over_size import BY_DEVICE, lost_words, marks_of, plot_over_size
from crossover.figures.panels import blank_figure
from crossover.figures.style import ink
from crossover.figures.views import StudyView
from crossover.plan.stages import has_other_sides, plain_side
from crossover.statistics.summary import speedups
from crossover.tables.frames import CELL_AXES, first_row, rows_with

NO_PAIR = "Nothing to compare: the cells have one precision and one execution, or lack fp32 or eager among several."

KEPT = [axis for axis in CELL_AXES if axis not in ("size", "precision", "execution")]


def plot_precisions(view: StudyView) -> Figure:
    """Time of the plain precision and execution over that of each other, log-log, with the line at 1; a panel a device.

    The plain ones are fp32 and eager; of what a study has one of only, that one.
    """
    view = view.on_all_cores()
    plain = plain_of(view)
    if plain is None:
        return blank_figure(view.title, NO_PAIR)

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        first = first_row(cells)
        found = ratios_over_plain(view, first, plain)
        x, y, low, high = (found[column].to_numpy(float) for column in ("x", "speedup", "low", "high"))
        look = looks.of(first)
        without = lost_words(cells) or f": no time in {plain_words(view, plain)}"
        said = lost_words(cells) if len(found) else without
        return [Line(name + said, look, x, y, low, high, marks=marks_of(cells, ink(look.colour)) if len(x) else ())]

    compared = view.cells[~is_plain(view.cells, plain)]
    label = f"speed-up over {plain_words(view, plain)}"
    ticks = StrMethodFormatter("{x:,g}×")
    return plot_over_size(view, compared, lines, label, ticks, equal=1, arrangement=BY_DEVICE)


def plain_of(view: StudyView) -> dict[str, str] | None:
    """The precision and the execution that the others are compared with; None where there is nothing to compare."""
    values = {axis: list(view.cells[axis].unique()) for axis in ("precision", "execution")}
    if not has_other_sides(**{f"{axis}s": own for axis, own in values.items()}):
        return None
    return {axis: side for axis, own in values.items() if (side := plain_side(axis, own)) is not None}


def plain_words(view: StudyView, plain: Mapping[str, str]) -> str:
    """'fp32, eager': what is plain, of the axes in which the study has several."""
    return ", ".join(side for axis, side in plain.items() if view.cells[axis].nunique() > 1)


def is_plain(cells: pd.DataFrame, plain: Mapping[str, str]) -> pd.Series:
    """Which of the cells are the plain ones."""
    return (cells["precision"] == plain["precision"]) & (cells["execution"] == plain["execution"])


def ratios_over_plain(view: StudyView, line: Mapping[str, Any], plain: Mapping[str, str]) -> pd.DataFrame:
    """What `speedups` gives of a line over the plain one with its other axes."""
    trials = view.with_x(rows_with(view.measurements, KEPT, line))
    own = (trials["precision"] == line["precision"]) & (trials["execution"] == line["execution"])
    sides = trials.assign(side=own.map({True: "line", False: ""}).where(~is_plain(trials, plain), "plain"))
    return speedups(sides, "plain", "line", "side")

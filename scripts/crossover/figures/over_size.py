"""Any quantity over size in a study with many lines: what a panel keeps fixed, and how its lines are named."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.answers.sentences import axis_words, known_place
from crossover.figures.curves import Looks, looks_of
from crossover.figures.line_panels import Line, LinePanel, plot_line_panels
from crossover.figures.status_marks import StatusMark, status_marks
from crossover.figures.style import (
    DEVICE_WORDS,
    PROTOCOL_WORDS,
    device_label,
    short_name,
    side_word,
)
from crossover.figures.views import StudyView
from crossover.tables.frames import device_name_of, first_row, on_all_cores

Maker = Callable[[pd.DataFrame, str, Looks], list[Line]]
"""Makes a line of a cell's sizes, or several, from their rows, their name, and how lines look."""


@dataclass(frozen=True)
class Arrangement:
    """The axes that a panel keeps fixed, and those that tell its lines apart, the first of these by colour."""

    panel: list[str]
    line: list[str]

    def name(self, view: StudyView, cells: pd.DataFrame, varied: Collection[str]) -> str:
        """What a line is called in its panel: its device, if the panel has several, and what else sets it apart."""
        row = first_row(cells)
        threads = cells["threads"].max() if view.has_fewer_cores else None
        device = side_word(row["device"], threads) if "device" in self.line else ""
        axes = [axis for axis in NAMED_AXES if axis in self.line and axis in varied]
        return ", ".join(words for words in (device, name_by(row, axes)) if words)

    def title(self, cells: pd.DataFrame, varied: Collection[str]) -> str:
        """What a panel is called: its device, if it is of one, and what else sets it apart."""
        row = first_row(cells)
        words = {
            "protocol": PROTOCOL_WORDS[row["protocol"]],
            "device": device_label(row["device"], device_name_of(cells)),
        }
        axes = [axis for axis in self.panel if axis in varied or axis == "device"]
        return ", ".join(words.get(axis) or name_by(row, [axis]) for axis in axes)


BY_EXECUTION = Arrangement(
    ["workload", "protocol", "batch_size", "execution"], ["precision", "variant", "machine", "device"]
)
BY_DEVICE = Arrangement(
    ["device", "workload", "protocol", "batch_size", "variant"], ["precision", "execution", "machine"]
)


def plot_over_size(
    view: StudyView,
    cells: pd.DataFrame,
    maker: Maker,
    y_label: str,
    ticks: Formatter,
    *,
    equal: float | None = None,
    shares: bool = False,
    arrangement: Arrangement = BY_EXECUTION,
) -> Figure:
    """Draw the lines that `maker` makes of the cells; the keywords are those of `plot_line_panels`."""
    panels = line_panels(view, cells, maker, arrangement)
    label = x_unit(view) if "device" in arrangement.panel else x_label(view)
    return plot_line_panels(view.title, panels, label, y_label, ticks, x_words(view, cells), equal=equal, shares=shares)


def line_panels(
    view: StudyView, cells: pd.DataFrame, maker: Maker, arrangement: Arrangement = BY_EXECUTION
) -> list[LinePanel]:
    """The panels of an arrangement, of cells of the study; those without any point are left out, unless all are."""
    cells = view.with_x(cells)
    told = [axis for axis in arrangement.line if axis != "device"]
    # What is left out of the cells of a device still tells these apart, so that colours mean the same in all figures.
    told_apart = view.cells if "device" in arrangement.panel else cells
    looks = looks_of(told_apart, arrangement.line if varying(told_apart, told) else [])
    varied = varying(told_apart, [*arrangement.panel, *arrangement.line])
    varied += ["machine"] * (view.has_machines and "machine" not in varied)
    panels = []
    for _, own in cells.groupby(arrangement.panel, sort=False):
        lines = [
            replace(line, refined=_refined(one))
            for _, one in own.groupby(arrangement.line, sort=False)
            for line in maker(one, arrangement.name(view, one, varied), looks)
        ]
        panels.append(LinePanel(arrangement.title(own, varied), lines))
    return [panel for panel in panels if any(len(one.x) for one in panel.lines)] or panels


def lost_words(cells: pd.DataFrame) -> str:
    """How the first size without a time ended, behind a line's name; ': unsupported' where it is so of all sizes."""
    lost = cells[cells["step_time_s"].isna()]
    if lost.empty:
        return ""
    if len(lost) == len(cells):
        return f": {', '.join(lost['status'].unique())}"
    return f", {lost['status'].iloc[0]} at {lost['size'].iloc[0]:,}"


def marks_of(cells: pd.DataFrame, colour: str) -> list[StatusMark]:
    """The marks of a line's cells; none where no size has a time, which its name says."""
    return status_marks(cells, colour) if cells["step_time_s"].notna().any() else []


def x_unit(view: StudyView) -> str:
    """What the x axis counts."""
    return axis_words({"x_axis": view.x_axis, "size_name": view.cells["size_name"].iloc[0]})


def x_label(view: StudyView) -> str:
    """What the x axis counts, and below it the devices."""
    devices = on_all_cores(view.cells).dropna(subset=["device_name"]).drop_duplicates(["machine", "device"])
    names = [
        f"{row['machine']}, " * view.has_machines + f"{DEVICE_WORDS[row['device']]}: {short_name(row['device_name'])}"
        for _, row in devices.iterrows()
    ]
    return "\n".join([x_unit(view), "; ".join(names)])


def x_words(view: StudyView, cells: pd.DataFrame) -> dict[float, str]:
    """The words for every measured place on the x axis."""
    return {float(x): known_place(view.x_axis, x) for x in view.with_x(cells)["x"].dropna()}


def _refined(cells: pd.DataFrame) -> frozenset[float]:
    return frozenset(cells.loc[cells["refined"].astype(bool), "x"])

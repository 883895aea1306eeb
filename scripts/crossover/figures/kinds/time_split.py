"""Where a step goes: the parts of its time, one bar a cell, with the remedy that was tried against the largest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from crossover.config.words import DEVICES
from crossover.figures.panels import Panel, column, draw_panels
from crossover.figures.style import INK, SPLIT_COLOURS, wrapped
from crossover.figures.view import StudyView
from crossover.tables.frames import on_all_cores, records
from crossover.tables.labels import name_by, varying
from crossover.tables.registry import CELL_AXES, REMEDIES, SPLIT
from crossover.tables.run_tables import RunTables
from crossover.text import number_text, seconds_text

CAPTION = (
    "Parts of a step's time, by what it gains when they are taken away one after the other. Line: 95 % interval of the "
    "largest part. Right: how many times as fast the remedy tried against it made what the parts before it leave."
)

MOST_BARS = 12
NAME_LETTERS = 36


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return len(tables.bottlenecks) > 0


def draw(view: StudyView) -> Figure:
    """A panel a device."""
    rows = on_all_cores(view.tables.bottlenecks).merge(
        view.cells[[*CELL_AXES, "size_name", "step_time_s"]], on=CELL_AXES
    )
    rows = rows.sort_values(["protocol", "execution", "precision", "size"], kind="stable")
    panels = [_panel(view, own) for device in DEVICES if len(own := rows[rows["device"] == device])]
    return draw_panels(view, panels, "", PercentFormatter(1))


def _panel(view: StudyView, rows: pd.DataFrame) -> Panel:
    kept = rows.iloc[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_BARS)).round().astype(int))]
    title = f"{view.device_title(str(rows['device'].iloc[0]))}: share of a step's time"
    named = varying(rows) or ["size"]
    names = [
        wrapped(f"{name_by(row, named)}: {seconds_text(row['step_time_s'])}", NAME_LETTERS) for row in records(kept)
    ]
    lines = 1 + max(name.count("\n") for name in names)
    return Panel(title, (), partial(_draw_bars, kept, names), bars=len(kept) * lines)


def _draw_bars(rows: pd.DataFrame, names: list[str], axes: Axes) -> None:
    places, left = np.arange(len(rows)), np.zeros(len(rows))
    for part, words in SPLIT.items():
        width = np.nan_to_num(column(rows, f"{part}_share"))
        if (width > 0.005).any():
            axes.barh(places, width, left=left, color=SPLIT_COLOURS[part], height=0.7, label=words)
        for place in np.flatnonzero((rows["bottleneck"] == part).to_numpy()):
            low, high = (column(rows, f"{part}_share_{end}")[place] for end in ("low", "high"))
            axes.plot(np.minimum([left[place] + low, left[place] + high], 1), [place] * 2, color=INK, linewidth=1)
        left = left + width
    for number, row in enumerate(records(rows)):
        if row["gain"] is not None:
            words = f"{REMEDIES[row['remedy']]}: {number_text(row['gain'])}×"
            axes.annotate(words, (1, number), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, names, fontsize=8.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.6)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(PercentFormatter(1))

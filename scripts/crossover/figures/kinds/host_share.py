"""The host's share: the part of a step in which the device runs nothing."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from crossover.figures.panels import BY_DEVICE, arrange, draw_panels, line_of
from crossover.figures.style import worded
from crossover.figures.view import StudyView
from crossover.tables.run_tables import RunTables
from crossover.text import share_text

CAPTION = (
    "Share of a step's wall time in which the device runs nothing, by the profiler: it waits for Python, dispatch and"
    " data. With the 95 % interval where several trials know it."
)


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return bool(tables.cells["host_bound_share"].notna().any())


def draw(view: StudyView) -> Figure:
    """Share over size; a panel a device, a line a precision and execution."""
    known = view.cells.groupby("device")["host_bound_share"].transform("count") > 0
    panels = arrange(view, view.cells[known], partial(line_of, "host_bound_share"), BY_DEVICE)
    label = "share of a step in which\nthe device waits for the host"
    return draw_panels(view, panels, label, worded(share_text), shares=True)

"""Energy of a step, and what a million steps cost at the config's prices."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.figures.panels import Panel, arrange, draw_panels, line_of
from crossover.figures.style import log_ticks, worded
from crossover.figures.view import StudyView
from crossover.tables.run_tables import RunTables
from crossover.text import money_text

CAPTION = (
    "Energy of a step by the device's own counter, and what a million steps cost at the config's prices, both with "
    "the 95 % interval over trials."
)


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return bool(tables.cells[["energy_per_step_j", "price_per_million_steps"]].notna().any(axis=None))


def draw(view: StudyView) -> Figure:
    """Both over size, so far as they are known; a panel for each."""
    view = view.on_all_cores()
    joules = EngFormatter("J")
    panels = _panels(view, "energy", "energy_per_step_j")
    money = _panels(view, "money", "price_per_million_steps")
    label = f"{view.currency or 'money'} for\na million steps"

    def as_money(axes: Axes) -> None:
        axes.set_ylabel(label)
        log_ticks(axes.yaxis, worded(money_text))

    panels += [replace(panel, finish=as_money) for panel in money]
    nothing = "No energy was measured (that takes effort.timed_min_s of 10 or more), and the config has no prices."
    return draw_panels(view, panels, "energy of a step", joules, nothing=nothing, x_label=view.x_label_with_devices())


def _panels(view: StudyView, title: str, column: str) -> list[Panel]:
    if view.cells[column].isna().all():
        return []
    panels = arrange(view, view.cells, partial(line_of, column))
    return [replace(panel, title=", ".join(words for words in (title, panel.title) if words)) for panel in panels]

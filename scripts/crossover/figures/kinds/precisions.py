"""Speed-up of precisions and executions over the plain ones, on the same device."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.figures.panels import BY_DEVICE, arrange, draw_level, draw_panels, ratio_line
from crossover.figures.view import StudyView
from crossover.tables.run_tables import RunTables

CAPTION = (
    "How many times as fast as the plain precision and execution on the same device, with the 95 % interval over "
    "trials; above 1 it is faster. Hollow: sizes that refinement added."
)


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return bool((tables.ratios["pair"] == "settings").any())


def draw(view: StudyView) -> Figure:
    """Time of the plain precision and execution over that of each other; a panel a device."""
    view = view.on_all_cores()
    ratios = view.tables.ratios
    ratios = ratios[ratios["pair"] == "settings"]
    plain = ratios["baseline"].iloc[0] if len(ratios) else ""

    def decorate(_: pd.DataFrame, axes: Axes) -> None:
        draw_level(axes, f"as fast as {plain}")

    panels = arrange(view, ratios, partial(ratio_line, view), BY_DEVICE, decorate)
    return draw_panels(view, panels, f"speed-up over {plain}", StrMethodFormatter("{x:,g}×"))

"""Speed-up over size: how many times as fast as the CPU."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.config.words import BASELINE
from crossover.figures.panels import (
    BY_EXECUTION,
    Line,
    Look,
    arrange,
    draw_level,
    draw_panels,
    mark_published_crossover,
    ratio_line,
)
from crossover.figures.style import side_look
from crossover.figures.view import StudyView
from crossover.statistics.references import PAIR as REFERENCE
from crossover.tables.frames import first_row
from crossover.tables.labels import short_name, side_word
from crossover.tables.run_tables import RunTables

CAPTION = (
    "How many times as fast as the CPU here, with the 95 % interval over trials; above 1 the accelerator wins. Hollow: "
    "sizes that refinement added. Grey: published crossover. Dashed: steps as measured elsewhere over the CPU here."
)


def applies(tables: RunTables) -> bool:
    """Whether a study's tables hold something to show."""
    return len(_compared(tables.ratios)) > 0


def _compared(ratios: pd.DataFrame) -> pd.DataFrame:
    """Accelerators with the CPU beside them, and those measured elsewhere with the CPU here."""
    here = ratios[(ratios["pair"] == "device") & (ratios["baseline_machine"] == ratios["machine"])]
    elsewhere = ratios[(ratios["pair"] == REFERENCE) & (ratios["contender"] == ratios["device"])]
    return pd.concat([here, elsewhere])


def draw(view: StudyView) -> Figure:
    """Time on the CPU over time on each accelerator; a line for each number of cores that the CPU was timed on."""
    ratios = _compared(view.tables.ratios)
    elsewhere = dict(zip(view.tables.references["machine"], view.tables.references["device_name"], strict=True))
    several = ratios["baseline"].nunique() > 1

    def maker(rows: pd.DataFrame, name: str, look: Look) -> Line:
        first = first_row(rows)
        baseline = first["baseline"]
        if first["pair"] == REFERENCE:
            gpu = f"measured elsewhere ({first['machine']}): {short_name(elsewhere[first['machine']])}"
            name = ", ".join([gpu, *name.split(", ")[1:]])
            look = Look(look.colour, "--", look.marker)
        if several:
            name = f"{name} over the {side_word(baseline)}"
        dashes = look.dashes if baseline == BASELINE else side_look(baseline)[1]
        return ratio_line(view, rows, name, Look(look.colour, dashes, look.marker))

    def decorate(_: pd.DataFrame, axes: Axes) -> None:
        draw_level(axes, "equally fast")
        mark_published_crossover(axes, view)

    per_panel, per_line = BY_EXECUTION
    panels = arrange(view, ratios, maker, (per_panel, [*per_line, "baseline"]), decorate)
    return draw_panels(
        view,
        panels,
        "speed-up over the CPU",
        StrMethodFormatter("{x:,g}×"),
        x_label=view.x_label_with_devices(),
    )

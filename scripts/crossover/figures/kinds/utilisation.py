"""Achieved rate over size, and its share of what a matrix product reached on the device."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.figures.panels import Line, Look, arrange, draw_panels, line_of, with_best
from crossover.figures.view import StudyView
from crossover.text import number_text

CAPTION = (
    "Floating-point operations that a step achieves per second, with the 95 % interval over trials. Hollow: sizes "
    "that refinement added. Ring: a line's best, with its share of what a plain matrix product reached on the device "
    "in the same precision."
)


def draw(view: StudyView) -> Figure:
    """TFLOP/s over size; each line's best is ringed and named."""
    view = view.on_all_cores()

    def maker(cells: pd.DataFrame, name: str, look: Look) -> Line | None:
        known = cells.dropna(subset=["achieved_tflops", "x"])

        def words(best: int) -> str:
            rate, share = known["achieved_tflops"].iloc[best], known["peak_share"].iloc[best]
            return f"{number_text(rate)} TFLOP/s" + ("" if pd.isna(share) else f", {100 * share:.0f} % of matmul")

        return with_best(line_of("achieved_tflops", cells, name, look), words)

    return draw_panels(
        view,
        arrange(view, view.cells, maker),
        "achieved TFLOP/s",
        StrMethodFormatter("{x:,g}"),
        x_label=view.x_label_with_devices(),
    )

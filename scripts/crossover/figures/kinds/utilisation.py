"""Achieved rate over size, and its share of what a matrix product reached on the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from crossover.figures.panels import Line, Look, arrange, draw_panels, line_of
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
        line = line_of(cells, name, look, ("achieved_tflops", "achieved_tflops_low", "achieved_tflops_high"))
        if line is None or not len(line.y):
            return line
        best = int(np.argmax(line.y))
        share = cells.dropna(subset=["achieved_tflops", "x"])["peak_share"].iloc[best]
        of_matmul = "" if pd.isna(share) else f", {100 * share:.0f} % of matmul"
        return replace(line, label=f"{line.label}\n{number_text(line.y[best])} TFLOP/s{of_matmul}", ring=best)

    return draw_panels(
        view,
        arrange(view, view.cells, maker),
        "achieved TFLOP/s",
        StrMethodFormatter("{x:,g}"),
        x_label=view.x_label_with_devices(),
    )

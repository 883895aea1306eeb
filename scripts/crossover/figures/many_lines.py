"""Times, speed-ups and achieved rates of a study with many lines: a panel for each execution, a line each precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, StrMethodFormatter

from crossover.config.words import BASELINE, is_cpu
from crossover.figures.curves import Look, Looks
from crossover.figures.guides import guide_of
from crossover.figures.line_panels import Line
from crossover.figures.over_size import lost_words, marks_of, plot_over_size
from crossover.figures.status_marks import status_marks
from crossover.figures.style import ink, number_text, side_cores, side_look, side_word
from crossover.figures.views import StudyView
from crossover.statistics.summary import speedups
from crossover.tables.frames import first_row


def plot_many_times(view: StudyView) -> Figure:
    """Time over size, log-log, a panel for each execution; of a run where the study has one, else of a step."""

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        scale = view.run_steps(cells["batch_size"].iloc[0]) or 1
        timed = cells.dropna(subset=["step_time_s"])
        y, low, high = (
            timed[f"step_time{end}_s"].to_numpy(float, na_value=np.nan) * scale for end in ("", "_low", "_high")
        )
        first, x = first_row(cells), timed["x"].to_numpy(float)
        guide = guide_of(view, first, cells, scale)
        look = looks.of(first)
        marks = marks_of(cells, ink(look.colour))
        return [Line(name + lost_words(cells), look, x, y, low, high, guide=guide, marks=marks)]

    ticks = EngFormatter("s") if view.steps_per_run is None else StrMethodFormatter("{x:,g}")
    return plot_over_size(view, view.cells, lines, view.time_label(), ticks)


def plot_many_speedups(view: StudyView) -> Figure:
    """Time on the CPU over time on the accelerator at the same precision, log-log, a panel for each execution.

    Where the CPU was also timed on fewer cores, there is a line over each number of them.
    """

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        first = first_row(cells)
        trials, of_line = view.trials_of(first), view.cells_of(first)
        sides = _cpu_sides(view, first["machine"])
        return [
            _over(side, cells, of_line[of_line["device"] == side], trials, name + words, looks.of(first))
            for side, words in sides.items()
        ]

    contending = view.cells[~view.cells["device"].map(is_cpu)]
    return plot_over_size(view, contending, lines, "speed-up over the CPU", StrMethodFormatter("{x:,g}×"), equal=1)


def _cpu_sides(view: StudyView, machine: str) -> dict[str, str]:
    """What a machine's speed-ups are over, and how a line's name ends then: ' over 8 cores' where there are several."""
    if not view.has_fewer_cores:
        return {BASELINE: ""}
    cells = view.cells[view.cells["device"].map(is_cpu) & (view.cells["machine"] == machine)]
    return {
        str(device): f" over {side_cores(str(device), own['threads'].max())}"
        for device, own in cells.groupby("device", sort=False)
    }


def _over(baseline: str, cells: pd.DataFrame, over: pd.DataFrame, trials: pd.DataFrame, name: str, look: Look) -> Line:
    """The speed-up of an accelerator's cells over the CPU's, on all of its cores or on fewer."""
    contender = str(cells["device"].iloc[0])
    found = speedups(trials[trials["device"].isin([baseline, contender])], baseline, contender)
    x, y, low, high = (found[column].to_numpy(float) for column in ("x", "speedup", "low", "high"))
    said = lost_words(cells) if len(found) else ": no time on both devices"
    sides = ((cells, contender), (over, baseline))
    marks = [mark for own, device in sides for mark in status_marks(own, ink(look.colour), side_word(device))]
    if baseline != BASELINE:
        look = replace(look, dashes=side_look(baseline)[1])
    return Line(name + said, look, x, y, low, high, marks=marks if len(found) else ())


def plot_utilisation(view: StudyView) -> Figure:
    """Achieved TFLOP/s over size, log-log, and at its best the share of what a matrix product reached on the device."""

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        rated = cells.dropna(subset=["achieved_tflops", "step_time_s"])
        rate = rated["achieved_tflops"].to_numpy(float)
        best = int(np.argmax(rate)) if len(rate) else None
        said = lost_words(cells)
        if best is None and not said:
            said = ": operations not counted"
        if best is not None:
            said += f"\n{number_text(rate[best])} TFLOP/s{_share(rated['peak_share'].iloc[best])}"
        time, slow, fast = (
            rated[f"step_time{end}_s"].to_numpy(float, na_value=np.nan) for end in ("", "_high", "_low")
        )
        look = looks.of(first_row(cells))
        low, high = rate * time / slow, rate * time / fast
        marks = marks_of(cells, ink(look.colour))
        return [Line(name + said, look, rated["x"].to_numpy(float), rate, low, high, best, marks=marks)]

    view = view.on_all_cores()
    return plot_over_size(view, view.cells, lines, "achieved TFLOP/s", StrMethodFormatter("{x:g}"))


def _share(share: float) -> str:
    return "" if pd.isna(share) else f", {100 * share:.0f} % of matmul"

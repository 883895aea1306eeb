"""Times, speed-ups and achieved rates of a study with many lines: a panel for each execution, a line each precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, StrMethodFormatter

from crossover.analysis.curves import Look, Looks, looks_of
from crossover.analysis.guides import guide_of
from crossover.analysis.line_panels import Line, LinePanel, plot_line_panels
from crossover.analysis.naming import name_by, varying
from crossover.analysis.style import (
    DEVICE_WORDS,
    PROTOCOL_WORDS,
    cores_text,
    count_text,
    number_text,
    short_name,
    side_look,
    side_word,
)
from crossover.analysis.summary import speedups
from crossover.analysis.tables import first_row, on_all_cores
from crossover.analysis.views import StudyView
from crossover.records import BASELINE, is_cpu

PANEL = ["workload", "protocol", "batch_size", "execution"]
LINE = ["precision", "variant", "machine", "device"]
"""The axes that a panel keeps fixed, and those that tell its lines apart."""

Maker = Callable[[pd.DataFrame, str, Looks], list[Line]]
"""Makes a line of a cell's sizes, or several, from their rows, their name, and how lines look."""


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
        return [Line(name + _lost(cells), looks.of(first), x, y, low, high, guide=guide)]

    ticks = EngFormatter("s") if view.steps_per_run is None else StrMethodFormatter("{x:,g}")
    return _plot(view, view.cells, lines, view.time_label(), ticks)


def plot_many_speedups(view: StudyView) -> Figure:
    """Time on the CPU over time on the accelerator at the same precision, log-log, a panel for each execution.

    Where the CPU was also timed on fewer cores, there is a line over each number of them.
    """

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        first = first_row(cells)
        trials = view.trials_of(first)
        sides = _cpu_sides(view, first["machine"])
        return [_over(side, cells, trials, name + words, looks.of(first)) for side, words in sides.items()]

    contending = view.cells[~view.cells["device"].map(is_cpu)]
    return _plot(view, contending, lines, "speed-up over the CPU", StrMethodFormatter("{x:,g}×"), equal=1)


def _cpu_sides(view: StudyView, machine: str) -> dict[str, str]:
    """What a machine's speed-ups are over, and how a line's name ends then: ' over 8 cores' where there are several."""
    if not view.has_fewer_cores:
        return {BASELINE: ""}
    cells = view.cells[view.cells["device"].map(is_cpu) & (view.cells["machine"] == machine)]
    return {
        str(device): f" over {cores_text(own['threads'].max())}" for device, own in cells.groupby("device", sort=False)
    }


def _over(baseline: str, cells: pd.DataFrame, trials: pd.DataFrame, name: str, look: Look) -> Line:
    """The speed-up of an accelerator's cells over the CPU, on all of its cores or on fewer."""
    contender = str(cells["device"].iloc[0])
    found = speedups(trials[trials["device"].isin([baseline, contender])], baseline, contender)
    x, y, low, high = (found[column].to_numpy(float) for column in ("x", "speedup", "low", "high"))
    said = _lost(cells) if len(found) else ": no time on both devices"
    if baseline != BASELINE:
        look = replace(look, dashes=side_look(baseline)[1])
    return Line(name + said, look, x, y, low, high)


def plot_utilisation(view: StudyView) -> Figure:
    """Achieved TFLOP/s over size, log-log, and at its best the share of what a matrix product reached on the device."""

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        rated = cells.dropna(subset=["achieved_tflops", "step_time_s"])
        rate = rated["achieved_tflops"].to_numpy(float)
        best = int(np.argmax(rate)) if len(rate) else None
        said = _lost(cells)
        if best is None and not said:
            said = ": operations not counted"
        if best is not None:
            said += f"\n{number_text(rate[best])} TFLOP/s{_share(rated['peak_share'].iloc[best])}"
        time, slow, fast = (
            rated[f"step_time{end}_s"].to_numpy(float, na_value=np.nan) for end in ("", "_high", "_low")
        )
        look = looks.of(first_row(cells))
        low, high = rate * time / slow, rate * time / fast
        return [Line(name + said, look, rated["x"].to_numpy(float), rate, low, high, best)]

    view = view.on_all_cores()
    return _plot(view, view.cells, lines, "achieved TFLOP/s", StrMethodFormatter("{x:g}"))


def _plot(
    view: StudyView, cells: pd.DataFrame, maker: Maker, y_label: str, ticks: Formatter, equal: float | None = None
) -> Figure:
    cells = cells.assign(x=cells[view.x_axis].astype(float))
    looks = looks_of(cells, LINE if varying(cells, ["precision", "variant", "machine"]) else [])
    named = ["machine"] * view.has_machines + varying(cells, ["variant", "precision"])
    titled = varying(cells, PANEL)
    panels = []
    for _, own in cells.groupby(PANEL, sort=False):
        named_lines = [(one, _name(view, one, named)) for _, one in own.groupby(LINE, sort=False)]
        lines = [replace(line, refined=_refined(one)) for one, name in named_lines for line in maker(one, name, looks)]
        panels.append(LinePanel(_title(first_row(own), titled), lines))
    panels = [panel for panel in panels if any(len(one.x) for one in panel.lines)] or panels
    return plot_line_panels(view.title, panels, _x_label(view), y_label, ticks, _x_words(view, cells), equal)


def _refined(cells: pd.DataFrame) -> frozenset[float]:
    return frozenset(cells.loc[cells["refined"].astype(bool), "x"])


def _name(view: StudyView, cells: pd.DataFrame, axes: list[str]) -> str:
    row = first_row(cells)
    device = side_word(row["device"], cells["threads"].max() if view.has_fewer_cores else None)
    return ", ".join(words for words in (device, name_by(row, axes)) if words)


def _title(row: dict[str, Any], axes: list[str]) -> str:
    words = {"protocol": PROTOCOL_WORDS[row["protocol"]]}
    return ", ".join(words.get(axis) or name_by(row, [axis]) for axis in axes)


def _lost(cells: pd.DataFrame) -> str:
    """How the first size without a time ended; ': unsupported' where it is so of all sizes."""
    lost = cells[cells["step_time_s"].isna()]
    if lost.empty:
        return ""
    status = lost["status"].iloc[0]
    return f": {status}" if len(lost) == len(cells) else f", {status} at {lost['size'].iloc[0]:,}"


def _share(share: float) -> str:
    return "" if pd.isna(share) else f", {100 * share:.0f} % of matmul"


def _x_label(view: StudyView) -> str:
    unit = "parameters" if view.x_axis == "parameters" else str(view.cells["size_name"].iloc[0])
    devices = on_all_cores(view.cells).dropna(subset=["device_name"]).drop_duplicates(["machine", "device"])
    names = [
        f"{row['machine']}, " * view.has_machines + f"{DEVICE_WORDS[row['device']]}: {short_name(row['device_name'])}"
        for _, row in devices.iterrows()
    ]
    return "\n".join([unit, "; ".join(names)])


def _x_words(view: StudyView, cells: pd.DataFrame) -> dict[float, str]:
    say = count_text if view.x_axis == "parameters" else "{:,.0f}".format
    return {float(x): say(x) for x in cells["x"].dropna()}

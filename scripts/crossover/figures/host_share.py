"""Figure of the host's share: the part of a step's wall time in which the device runs nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from scipy import stats

from crossover.figures.curves import Looks
from crossover.figures.line_panels import Line
from crossover.figures.over_size import BY_DEVICE, lost_words, marks_of, plot_over_size
from crossover.figures.panels import blank_figure
from crossover.figures.style import ink, share_text
from crossover.figures.views import StudyView
from crossover.statistics.summary import CONFIDENCE
from crossover.tables.frames import CELL_AXES, DEVICE_LINE_AXES, first_row, rows_with

NO_SHARE = "Not known: no trial on these devices was profiled, as those on CUDA and XPU are."


@dataclass(frozen=True)
class Share:
    """A share with the 95 % interval of its mean over trials; NaN where one trial alone knows it."""

    mean: float
    low: float
    high: float
    trials: int


def plot_host_share(view: StudyView) -> Figure:
    """Share of a step that the host alone takes, over size; a panel a device, a line a precision and execution."""
    shares = host_shares(view)
    if shares.empty:
        return blank_figure(view.title, NO_SHARE)

    def lines(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
        first = first_row(cells)
        found = rows_with(shares, DEVICE_LINE_AXES, first)
        x, y, low, high = (found[column].to_numpy(float) for column in ("x", "mean", "low", "high"))
        look, lost = looks.of(first), lost_words(cells)
        ends = share_text(y[-1]) if len(y) else "not known"
        said = ": ".join(words for words in (name, ends) if words) + lost if len(y) or not lost else f"{name}{lost}"
        return [Line(said, look, x, y, low, high, marks=marks_of(cells, ink(look.colour)) if len(x) else ())]

    known = view.cells[view.cells["device"].isin(shares["device"])]
    label = "share of a step in which\nthe device waits for the host"
    return plot_over_size(
        view, known, lines, label, FuncFormatter(lambda value, _: share_text(value)), shares=True, arrangement=BY_DEVICE
    )


def host_shares(view: StudyView) -> pd.DataFrame:
    """One row a cell that some ok trial knows it of: its axes, x, and the fields of `Share`; sizes ascending."""
    ok = view.measurements[view.measurements["status"] == "ok"].dropna(subset=["host_bound_share"])
    rows: list[dict[str, Any]] = [
        {**dict(zip(CELL_AXES, key, strict=True)), "x": float(own[view.x_axis].iloc[0])}
        | vars(share_over_trials(own["host_bound_share"].astype(float).tolist()))
        for key, own in ok.groupby(CELL_AXES, sort=False)
    ]
    return pd.DataFrame(rows, columns=[*CELL_AXES, "x", *Share.__dataclass_fields__]).sort_values("x")


def share_over_trials(values: Sequence[float]) -> Share:
    """Mean and t interval, within 0 and 1, of at least one trial's share."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Share(mean, math.nan, math.nan, 1)
    t = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    spread = t * statistics.stdev(values) / math.sqrt(len(values))
    low, high = np.clip([mean - spread, mean + spread], 0, 1).tolist()
    return Share(mean, low, high, len(values))

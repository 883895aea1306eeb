"""Throughput over batch size, with the best of each line and the largest batch that fits."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.figures.panels import (
    Line,
    Look,
    arrange,
    draw_panels,
    line_of,
    looks_of,
    plot_published,
    reach,
    with_best,
)
from crossover.figures.view import StudyView
from crossover.tables.frames import first_row, records
from crossover.tables.registry import SEARCH_AXES
from crossover.text import rate_text

CAPTION = (
    "Samples per second over batch size, both axes logarithmic, with the 95 % interval over trials. Ring: a line's "
    "best. Hollow square: the largest batch that fits, where it was searched, timed in one process. Grey: published, "
    "on the hardware named. Cross: a batch that ended without a result."
)

BY_BATCH = (["device", "workload", "protocol", "size"], ["precision", "execution", "variant", "machine"])


def draw(view: StudyView) -> Figure:
    """A panel a device and size, a line a precision, execution and variant."""
    cells = view.on_all_cores().cells
    cells = cells.assign(x=cells["batch_size"].astype(float)).sort_values("x", kind="stable")
    batches = {float(batch): f"{batch:,}" for batch in cells["batch_size"].unique()}

    def maker(own: pd.DataFrame, name: str, look: Look) -> Line | None:
        known = own.dropna(subset=["samples_per_s"])

        def words(best: int) -> str:
            cell = first_row(known.iloc[[best]])
            largest = [f"largest batch: {row['largest']:,}" for row in _searches(view, own)]
            return "\n".join([f"best: {rate_text(cell['samples_per_s'])} at batch {cell['batch_size']:,}", *largest])

        return with_best(line_of("samples_per_s", own.assign(size=own["batch_size"]), name, look), words)

    def decorate(own: pd.DataFrame, axes: Axes) -> None:
        _draw_largest(axes, view, own)
        first = {axis: value for axis, value in first_row(own).items() if axis in ("device", "size")}
        results = view.published_on({}, "batch_size", "samples_per_s")
        beside = [row for row in results if all(row[axis] in (None, value) for axis, value in first.items())]
        plot_published(axes, beside, "batch_size", "samples_per_s")

    panels = arrange(view, cells, maker, BY_BATCH, decorate)
    rate = EngFormatter(sep="")
    return draw_panels(view, panels, "samples per second", rate, x_label="batch size", x_words=batches)


def _searches(view: StudyView, own: pd.DataFrame) -> list[dict[str, Any]]:
    """The searches of the lines of these cells that timed the largest batch."""
    searches = view.tables.largest_batches.dropna(subset=["largest", "throughput_samples_per_s"])
    return records(searches.merge(own[SEARCH_AXES].drop_duplicates()))


def _draw_largest(axes: Axes, view: StudyView, own: pd.DataFrame) -> None:
    """A hollow square for the largest batch of each line."""
    looks = looks_of(view.cells, BY_BATCH[1])
    searches = _searches(view, own)
    reach(axes, [row["throughput_samples_per_s"] for row in searches])
    for row in searches:
        point = ([row["largest"]], [row["throughput_samples_per_s"]])
        axes.plot(*point, "s", color=looks(row).colour, markerfacecolor="none", markersize=9, markeredgewidth=1.6)

"""Figure of throughput: samples per second over batch size, with the optimum of every line."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.answers.naming import name_by, varying
from crossover.config.words import DEVICES
from crossover.figures.curves import Looks, Tag, looks_of
from crossover.figures.line_panels import Line, LinePanel, plot_line_panels
from crossover.figures.status_marks import status_marks
from crossover.figures.style import device_label, ink, rate_text
from crossover.figures.views import StudyView
from crossover.statistics.largest_batches import largest_words
from crossover.tables.frames import device_name_of, first_row, records

LINE = ["machine", "size", "variant", "protocol", "precision", "execution"]
"""The axes that tell the lines of a panel apart."""


def plot_throughput(view: StudyView) -> Figure:
    """Samples per second over batch size, log-log, a panel a device.

    A ring marks a line's optimum, a hollow square the largest batch that fits, where it was searched.
    """
    looks = looks_of(view.cells, ["precision", "variant", "execution", "size", "protocol", "machine"])
    named = varying(view.cells, LINE)
    panels = []
    for device in (device for device in DEVICES if device in set(view.cells["device"])):
        cells = view.cells[view.cells["device"] == device]
        lines = [
            _line(line, named, looks, view.search_of(first_row(line))) for _, line in cells.groupby(LINE, sort=False)
        ]
        title = device_label(device, device_name_of(cells))
        panels.append(LinePanel(title, lines, _published(view, device)))
    batches = {float(batch): f"{batch:,}" for batch in view.cells["batch_size"]}
    return plot_line_panels(view.title, panels, "batch size", "samples per second", EngFormatter(sep=""), batches)


def _line(line: pd.DataFrame, named: list[str], looks: Looks, search: dict[str, Any] | None) -> Line:
    first = first_row(line)
    timed = line.dropna(subset=["samples_per_s"]).sort_values("batch_size")
    batch, rate = timed["batch_size"].to_numpy(float), timed["samples_per_s"].to_numpy(float)
    best = int(np.argmax(rate)) if len(rate) else None
    # The largest batch, which a process of its own timed, may be faster than all of the line.
    of = "best of the timed sizes" if search else "best"
    said = [f"{of}: {rate_text(rate[best])} at batch {batch[best]:,.0f}"] if best is not None else []
    lost = line[line["samples_per_s"].isna()].sort_values("batch_size")
    if len(lost):
        said.append(f"{lost['status'].iloc[0]} at {lost['batch_size'].iloc[0]:,}")
    largest = largest_words(search) if search else ""
    text = "\n".join(words for words in (name_by(first, named), ", ".join(said), largest) if words)
    square = None
    if search and search["throughput_samples_per_s"] is not None:
        square = (float(search["largest"]), float(search["throughput_samples_per_s"]))
    low, high = (batch / timed[f"step_time_{end}_s"].to_numpy(float, na_value=np.nan) for end in ("high", "low"))
    look = looks.of(first)
    marks = status_marks(line.assign(x=line["batch_size"]), ink(look.colour)) if len(rate) else ()
    return Line(text, look, batch, rate, low, high, best, square, marks=marks)


def _published(view: StudyView, device: str) -> list[Tag]:
    """The published results of a device that state a throughput and a batch size."""
    needed = ["device", "batch_size", "samples_per_s"]
    if view.published_results is None or not set(needed) <= set(view.published_results):
        return []
    results = view.published_results[view.published_results["device"] == device].dropna(subset=needed)
    differing = varying(results, LINE)
    points = [(result["hardware"] or "published", name_by(result, differing), result) for result in records(results)]
    named = Counter((hardware, name, result["batch_size"]) for hardware, name, result in points)
    tags = []
    for hardware, name, result in points:
        # Points that hardware and axes leave alike differ in what their source calls them.
        label = result.get("label") if named[hardware, name, result["batch_size"]] > 1 else None
        words = [hardware, label, name, rate_text(result["samples_per_s"])]
        tags.append(
            Tag(", ".join(word for word in words if word), point=(result["batch_size"], result["samples_per_s"]))
        )
    return tags

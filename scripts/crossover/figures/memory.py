"""Figure of memory: the peak of a step below the device's capacity, and what the peak is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter

from crossover.answers.naming import name_by, varying
from crossover.config.words import DEVICES
from crossover.figures.curves import Tag, looks_of, write_tags
from crossover.figures.line_panels import Line, LinePanel, draw_panel, height_of, write_words
from crossover.figures.log_ticks import tick_values
from crossover.figures.memory_bars import plot_memory_bars
from crossover.figures.over_size import x_unit, x_words
from crossover.figures.panels import LEFT_IN, LETTER_IN, TOP_IN, blank_figure, tick_counts
from crossover.figures.status_marks import make_room, status_marks
from crossover.figures.style import (
    CROSSOVER_COLOUR,
    GUIDE_COLOUR,
    LABEL_BOX,
    PART_COLOURS,
    bytes_text,
    device_label,
    ink,
    share_text,
    use_style,
)
from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS, capacities, memory_rows, peak_label
from crossover.tables.frames import LINE_AXES, device_name_of, first_row

NO_MEMORY = "The memory of none of these cells is known."
MOST_SPLITS = 2
"""Lines of a device whose peaks are split; of more, those that need the most."""
TICK_SHARE = 0.15
"""Of a panel's width, what the words of a size need."""
PANEL_IN, SPLIT_IN, GAP_IN, BOTTOM_IN = 4.3, 1.25, 0.75, 0.6


@dataclass(frozen=True)
class Column:
    """What is drawn of one device: the peaks of all its lines, and the split of some."""

    device: str
    rows: pd.DataFrame
    peaks: LinePanel
    splits: Mapping[str, pd.DataFrame]
    """By name, the rows of a line whose parts are known, sizes ascending."""

    @property
    def width_in(self) -> float:
        """The width with the words beside the panels."""
        texts = [*(tag.text for tag in self.peaks.tags), *(f"{words} under 1 %" for words in PARTS.values())]
        return LEFT_IN + PANEL_IN + 0.45 + LETTER_IN * max(len(row) for text in texts for row in text.split("\n"))


def plot_memory(view: StudyView) -> Figure:
    """Peak memory of a step over size, log-log, with the device's capacity as a wall; below it what the peak is for.

    A column a device. Of a study with one size, a bar a cell.
    """
    view = view.on_all_cores()
    rows = memory_rows(view)
    if rows["peak_bytes"].isna().all():
        return blank_figure(view.title, NO_MEMORY)
    if rows["size"].nunique() == 1:
        return plot_memory_bars(view, rows)
    columns = [_column(rows, device) for device in DEVICES if rows.loc[rows["device"] == device, "peak_bytes"].any()]
    figure, all_axes = _lay_out(view.title, columns)
    words = x_words(view, rows)
    for column, axes in zip(columns, all_axes, strict=True):
        _draw_peaks(axes[0], column, words)
        for own, (name, line) in zip(axes[1:], column.splits.items(), strict=True):
            _draw_split(own, line, name, words)
        axes[-1].set_xlabel(x_unit(view))
    return figure


def _column(rows: pd.DataFrame, device: str) -> Column:
    varied = varying(rows, LINE_AXES)
    looks = looks_of(rows, [axis for axis in ("precision", "variant", "execution", "protocol") if axis in varied])
    own = rows[rows["device"] == device]
    lines, splits = [], []
    for _, line in own.groupby(LINE_AXES, sort=False):
        first = first_row(line)
        name, look, known = name_by(first, varied), looks.of(first), line.dropna(subset=["peak_bytes"])
        largest = f"{bytes_text(known['peak_bytes'].iloc[-1])}" if len(known) else ", ".join(line["status"].unique())
        nothing = np.full(len(known), np.nan)
        lines.append(
            Line(
                f"{name}: {largest}" if name else largest,
                look,
                known["x"].to_numpy(float),
                known["peak_bytes"].to_numpy(float),
                nothing,
                nothing,
                refined=frozenset(known.loc[known["refined"].astype(bool), "x"]),
                marks=status_marks(line, ink(look.colour)) if len(known) else (),
            )
        )
        if len(split := line.dropna(subset=list(PARTS))):
            splits.append((name, split))
    most = sorted(range(len(splits)), key=lambda place: -splits[place][1]["peak_bytes"].max())[:MOST_SPLITS]
    kept = [splits[place] for place in sorted(most)]
    said = "what it is for" if len(splits) <= MOST_SPLITS else "what it is for, where most is needed"
    title = device_label(device, device_name_of(own))
    named = {": ".join(words for words in (said, name) if words): split for name, split in kept}
    return Column(device, own, LinePanel(title, lines), named)


def _lay_out(title: str, columns: Sequence[Column]) -> tuple[Figure, list[list[Axes]]]:
    use_style()
    peaks_in = max(height_of(column.peaks) for column in columns)
    rows = max(len(column.splits) for column in columns)
    height_in = TOP_IN + peaks_in + rows * (GAP_IN + SPLIT_IN) + BOTTOM_IN
    width_in = sum(column.width_in for column in columns)
    figure = plt.figure(figsize=(width_in, height_in))
    figure.suptitle(title, x=0.01, y=1 - 0.12 / height_in, ha="left", va="top", fontsize=13, weight="bold")
    found = []
    left_in = LEFT_IN
    for column in columns:
        own: list[Axes] = []
        top_in = height_in - TOP_IN
        for own_in in (peaks_in, *[SPLIT_IN] * len(column.splits)):
            place = (left_in / width_in, (top_in - own_in) / height_in, PANEL_IN / width_in, own_in / height_in)
            own.append(figure.add_axes(place, xscale="log", sharex=own[0] if own else None))
            top_in -= own_in + GAP_IN
        found.append(own)
        left_in += column.width_in
    return figure, found


def _draw_peaks(axes: Axes, column: Column, words: dict[float, str]) -> None:
    axes.set_yscale("log")
    axes.grid(color=GUIDE_COLOUR, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_ylabel(peak_label(column.device))
    axes.set_title(column.peaks.title)
    draw_panel(axes, column.peaks)
    walls = capacities(column.rows, column.device)
    peaks = column.rows["peak_bytes"].where(lambda peak: peak > 0)
    low, high = peaks.min() / 2, peaks.max() * 2
    for capacity in walls:
        axes.axhspan(capacity, 1e3 * capacity, color=CROSSOVER_COLOUR, alpha=0.08, linewidth=0)
        axes.axhline(capacity, color=CROSSOVER_COLOUR, linewidth=1.5)
    axes.set_ylim(low, max([high, *(4 * capacity for capacity in walls)]))
    make_room(axes, column.peaks.marks)
    tick_values(axes.yaxis, EngFormatter("B"))
    tick_counts(axes, words, {x for line in column.peaks.lines for x in line.refined}, TICK_SHARE)
    for capacity, whose in walls.items():
        axes.annotate(
            f"{whose}: {bytes_text(capacity)}",
            (0, capacity),
            (4, -4),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="top",
            fontsize=9,
            bbox=LABEL_BOX,
        )
    write_words(axes, column.peaks)


def _draw_split(axes: Axes, line: pd.DataFrame, title: str, words: dict[float, str]) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: share_text(value)))
    refined = set(line.loc[line["refined"].astype(bool), "x"])
    lefts, rights = bar_edges(line["x"].tolist())
    parts = line[list(PARTS)]
    shares = parts.div(parts.sum(axis=1).where(lambda total: total > 0), axis=0).fillna(0)
    below = np.zeros(len(line))
    tags = []
    for part, name in PARTS.items():
        share = shares[part].to_numpy(float)
        if share.max() < LEAST_SHARE:
            continue
        colour = PART_COLOURS[part]
        axes.bar(lefts, share, rights - lefts, below, align="edge", color=colour, linewidth=0)
        point = (float(rights[-1]), float(below[-1] + share[-1] / 2))
        tags.append(Tag(f"{name} {share_text(share[-1])}", colour, point))
        below = below + share
    tick_counts(axes, words, refined, TICK_SHARE)
    write_tags(axes, tags)


LEAST_SHARE = 0.005
"""A part that is nowhere more than this of the peak cannot be seen."""


def bar_edges(x: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Where bars at these ascending places begin and end on a logarithmic axis: 0.4 of the way to their neighbours."""
    logs = np.log(np.asarray(x, float))
    gaps = np.diff(logs) if len(logs) > 1 else np.array([1.0])
    before, after = np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
    reach = 0.4 * np.minimum(np.minimum(before, after)[: len(logs)], np.median(gaps))
    return np.exp(logs - reach), np.exp(logs + reach)

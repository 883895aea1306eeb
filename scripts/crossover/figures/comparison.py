"""Figure of a study with few cells: a row a cell, a dot for its time, one for its memory, one for its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    Formatter,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
)

from crossover.config.words import BASELINE
from crossover.figures.comparison_rows import comparison_rows, gpu_memory_column
from crossover.figures.log_ticks import LogTicks
from crossover.figures.style import (
    DEVICE_COLOURS,
    GUIDE_COLOUR,
    LABEL_BOX,
    PUBLISHED_COLOUR,
    bytes_text,
    device_label,
    number_text,
    seconds_text,
    small_text,
    use_style,
)
from crossover.figures.views import StudyView
from crossover.tables.frames import device_name_of

WIDTH_IN = 8.5
LETTER_IN = 0.072
"""About the width of a letter of a number, in inches."""
SHORT_LETTERS = 16
"""Of a number that a panel has room for without being wider than its neighbours."""


@dataclass(frozen=True)
class Panel:
    """One quantity of every row."""

    column: str
    label: str
    text: Callable[[float], str]
    formatter: Formatter


def plot_comparison(view: StudyView) -> Figure:
    """A dot a cell for time, peak memory and, where it is known, error; published results as diamonds below theirs."""
    use_style()
    rows = comparison_rows(view)
    places, heads, height = _places(rows)
    panels = [panel for panel in _panels(view, rows) if rows[panel.column].notna().any() or panel.column == "time_s"]
    shares = _width_shares(panels, rows)
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(WIDTH_IN, 1.5 + 0.27 * height),
        sharey=True,
        squeeze=False,
        layout="constrained",
        width_ratios=shares,
    )
    figure.suptitle(view.title, x=0.01, ha="left", fontsize=13, weight="bold")
    letters = max([len(label) for label in rows["label"]] + [20])
    width_in = WIDTH_IN - letters * LETTER_IN - 0.25 * len(panels)
    for own, panel, share in zip(axes[0], panels, shares, strict=True):
        _draw(own, panel, rows.assign(y=places), width_in * share)
        own.tick_params(axis="y", length=0)
    _name_rows(axes[0, 0], view, rows, places, heads, height)
    return figure


def _width_shares(panels: list[Panel], rows: pd.DataFrame) -> list[float]:
    """The panels' shares of the width: alike, but for the times, whose numbers may be long."""
    times = rows.dropna(subset=["time_s"])
    letters = [len(_number(panels[0], row)) for _, row in times.iterrows()]
    wide = max([SHORT_LETTERS, *letters])
    total = wide + SHORT_LETTERS * (len(panels) - 1)
    return [wide / total, *[SHORT_LETTERS / total] * (len(panels) - 1)]


def _places(rows: pd.DataFrame) -> tuple[list[float], dict[str, float], float]:
    """Where each row stands, downwards from 0, where each device's heading does, and the height of all."""
    y = 0.0
    places: list[float] = []
    heads: dict[str, float] = {}
    for row in rows.itertuples():
        if row.device not in heads:
            y += 0.5 if heads else 0
            heads[str(row.device)] = y
            y += 1
        y -= 0.15 if row.published else 0
        places.append(y)
        y += 1
    return places, heads, y


def _panels(view: StudyView, rows: pd.DataFrame) -> list[Panel]:
    of_a_run = view.steps_per_run is not None
    on_gpu = (rows["device"] != BASELINE) & rows["memory_bytes"].notna()
    on_cpu = (rows["device"] == BASELINE) & rows["memory_bytes"].notna()
    gpu_words = "all that is in use" if gpu_memory_column(view) == "device_used_bytes" else "peak that tensors needed"
    memory_words = [f"GPU: {gpu_words}"] * bool(on_gpu.any()) + ["CPU: growth of the process"] * bool(on_cpu.any())
    return [
        Panel(
            "time_s",
            "\n".join([view.time_label(), *["in brackets: one epoch"] * bool(view.epochs)]),
            partial(_run_text, epochs=view.epochs) if of_a_run else seconds_text,
            FuncFormatter(lambda value, _: number_text(value, 1)) if of_a_run else EngFormatter("s"),
        ),
        Panel("memory_bytes", "\n".join(["memory", *memory_words]), bytes_text, EngFormatter("B")),
        Panel("error", "largest error,\nrelative", small_text, FuncFormatter(lambda value, _: small_text(value))),
    ]


def _run_text(seconds: float, epochs: int | None) -> str:
    """The time of a run in seconds, and behind it that of one of its epochs: '349 (17.4 s)'."""
    text = number_text(seconds)
    return text if epochs is None else f"{text} ({seconds_text(seconds / epochs)})"


def _draw(axes: Axes, panel: Panel, rows: pd.DataFrame, width_in: float) -> None:
    known = rows.dropna(subset=[panel.column])
    known = known.assign(interval_end=_interval_ends(known))
    labels = [_number(panel, row) for _, row in known.iterrows()]
    _scale(axes, known, panel, labels, width_in)
    ours = rows[~rows["published"]]
    axes.hlines(ours["y"], 0, 1, transform=axes.get_yaxis_transform(), color=GUIDE_COLOUR, linewidth=0.8, zorder=0)
    for (_, row), label in zip(known.iterrows(), labels, strict=True):
        _mark(axes, panel, row, label)
    if panel.column == "time_s":
        for _, row in ours[ours["time_s"].isna()].iterrows():
            axes.annotate(
                row["status"],
                (0, row["y"]),
                (6, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontsize=10,
                weight="bold",
                color=DEVICE_COLOURS[row["device"]],
                bbox=LABEL_BOX,
            )
    axes.set_xlabel(panel.label, fontsize=10)


def _number(panel: Panel, row: pd.Series) -> str:
    text = panel.text(row[panel.column])
    return f"{text}, projected" if panel.column == "time_s" and row["projected"] else text


def _mark(axes: Axes, panel: Panel, row: pd.Series, label: str) -> None:
    value = float(row[panel.column])
    right = value
    colour = PUBLISHED_COLOUR if row["published"] else DEVICE_COLOURS[row["device"]]
    if panel.column == "time_s" and pd.notna(row["time_low_s"]):
        right = float(row["interval_end"])
        axes.hlines(row["y"], row["time_low_s"], right, color=colour, linewidth=2.5, zorder=2)
    hollow = panel.column == "time_s" and row["projected"]
    axes.plot(
        [value],
        [row["y"]],
        marker="D" if row["published"] else "o",
        markersize=6 if row["published"] else 7,
        color=colour,
        markerfacecolor="white" if hollow else colour,
        markeredgewidth=1.5,
        linestyle="none",
        zorder=3,
    )
    axes.annotate(
        label,
        (right, row["y"]),
        (7, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=PUBLISHED_COLOUR if row["published"] else "black",
        bbox=LABEL_BOX,
    )


def _interval_ends(known: pd.DataFrame) -> pd.Series:
    """Where the intervals of the times end: at most at twice the longest time, lest a wide one hide all others."""
    times = known["time_s"].astype(float)
    return known["time_high_s"].astype(float).fillna(times).clip(upper=2 * times.max())


def _scale(axes: Axes, known: pd.DataFrame, panel: Panel, labels: list[str], width_in: float) -> None:
    """Logarithmic beyond a factor of 10, else from zero; to the right as wide as the longest label needs."""
    values = known[panel.column].astype(float)
    positive = values[values > 0]
    if positive.empty:
        axes.set_xticks([])
        return
    ends = values if panel.column != "time_s" else _interval_ends(known)
    logarithmic = positive.max() > 10 * positive.min()
    place = math.log if logarithmic else float
    low = place(positive.min() / 1.5) if logarithmic else 0.0
    high = low
    for end, label in zip(ends, labels, strict=True):
        text_in = min(0.2 + LETTER_IN * len(label), 0.75 * width_in)
        at = place(max(end, positive.min()))
        high = max(high, low + (at - low) * width_in / (width_in - text_in))
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(math.exp(low), math.exp(high))
        last = max(ends)  # beyond it there is room for numbers only
        room_in = width_in * (math.log(last) - low) / (high - low)
        axes.xaxis.set_major_locator(FixedLocator(LogTicks(int(room_in / 0.5)).tick_values(math.exp(low), last)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=max(2, int(width_in / 0.8))))
    axes.xaxis.set_major_formatter(panel.formatter)


def _name_rows(
    axes: Axes, view: StudyView, rows: pd.DataFrame, places: list[float], heads: dict[str, float], height: float
) -> None:
    names = {device: device_name_of(own) for device, own in view.cells.groupby("device")}
    measured = set(view.cells["device"])
    headings = [
        device_label(device, names.get(device)) if device in measured else f"{device_label(device, None)}, not measured"
        for device in heads
    ]
    axes.set_yticks([*places, *heads.values()], [*rows["label"], *headings])
    axes.set_ylim(height - 0.4, -0.6)
    labels = axes.get_yticklabels()
    for label, published in zip(labels, rows["published"], strict=False):
        label.set_color(PUBLISHED_COLOUR if published else "black")
    for label, device in zip(labels[len(rows) :], heads, strict=True):
        label.set(color=DEVICE_COLOURS[device], weight="bold")

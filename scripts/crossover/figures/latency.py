"""Figure of a latency study: the right ways to measure beside each mistake, as distributions."""

from __future__ import annotations

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.figures.log_ticks import tick_values
from crossover.figures.style import (
    CROSSOVER_COLOUR,
    DEVICE_COLOURS,
    MISTAKE_COLOUR,
    PUBLISHED_COLOUR,
    device_label,
    number_text,
    use_style,
)
from crossover.figures.views import StudyView
from crossover.statistics.latency_rows import REFERENCE, LatencyRow, latency_rows, off_words, pooled
from crossover.tables.frames import CELL_AXES, records, rows_with

ROW_IN, WIDTH_IN = 0.31, 9.5
NUMBERS_AT_PT = (6, 106)
"""Where the two columns of numbers begin, right of a panel."""
NAME_LETTERS = 32
"""A longer name of a row takes two lines."""


def plot_latency(view: StudyView) -> Figure:
    """A panel a cell, a box a way to measure: quartiles, 1st to 99th percentile, what lies beyond, and the mean."""
    use_style()
    view = view.on_all_cores()
    panels = []
    for cell in records(view.cells):
        own = rows_with(view.measurements, CELL_AXES, cell)
        panels.append((cell, own, latency_rows(view.measurements, cell, view.published_results)))
    heights = [max(len(rows), 1) + 2.6 for _, _, rows in panels]
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(WIDTH_IN, 0.5 + ROW_IN * sum(heights)),
        squeeze=False,
        layout="constrained",
        height_ratios=heights,
    )
    figure.suptitle(view.title, x=0.01, ha="left", fontsize=13, weight="bold")
    named = varying(view.cells, NAMED_AXES)
    for own_axes, (cell, own, rows) in zip(axes[:, 0], panels, strict=True):
        words = [device_label(cell["device"], cell["device_name"]), name_by(cell, named)]
        own_axes.set_title(", ".join(word for word in words if word), color=DEVICE_COLOURS[cell["device"]], pad=8)
        _draw(own_axes, rows, DEVICE_COLOURS[cell["device"]])
        if not rows:
            word = "no latency measured" if cell["status"] == "ok" else cell["status"]
            own_axes.annotate(word, (0.02, 0.5), xycoords="axes fraction", fontsize=10, weight="bold")
        count = int((own["status"] == "ok").sum())
        passes = len(pooled(own, REFERENCE))
        pooled_words = (
            f"{count} trial{'' if count == 1 else 's'} pooled, {passes:,} passes" if count else "none measured ok"
        )
        own_axes.set_xlabel(f"latency of a pass ({pooled_words})")
    return figure


def _draw(axes: Axes, rows: list[LatencyRow], colour: str) -> None:
    places = [len(rows) - 1 - index for index in range(len(rows))]
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(places, [_in_lines(row.name) for row in rows])
    right = next((row for row in rows if row.kind == "right"), None)
    _scale(axes, rows)
    if right is not None:
        axes.axvline(right.mean_s, color=CROSSOVER_COLOUR, linewidth=0.8, zorder=0)
    for row, place, label in zip(rows, places, axes.get_yticklabels(), strict=True):
        own = {"right": colour, "published": PUBLISHED_COLOUR}.get(row.kind, MISTAKE_COLOUR)
        label.set(color=PUBLISHED_COLOUR if row.kind == "published" else "black", linespacing=1)
        if len(row.name) > NAME_LETTERS:
            label.set(fontsize=8.5)
        _draw_row(axes, row, place, own)
        _write_numbers(axes, row, place)


def _in_lines(name: str) -> str:
    return name if len(name) <= NAME_LETTERS else ",\n".join(name.rsplit(", ", 1))


def _draw_row(axes: Axes, row: LatencyRow, place: float, colour: str) -> None:
    if row.kind == "one sample":
        axes.hlines(place, row.low_s, row.high_s, color=colour, linewidth=2)
        axes.plot([row.low_s, row.high_s], [place, place], "|", color=colour, markersize=9, markeredgewidth=2)
        return
    if row.kind == "published":
        axes.errorbar([row.mean_s], [place], xerr=row.deviation_s, fmt="D", color=colour, markersize=6, capsize=3)
        return
    axes.boxplot(
        [row.samples_s],
        positions=[place],
        widths=0.5,
        orientation="horizontal",
        whis=(1, 99),
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.45, "edgecolor": colour},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        medianprops={"color": colour, "linewidth": 1.5},
        flierprops={"marker": ".", "markersize": 3, "markerfacecolor": colour, "markeredgecolor": "none"},
    )
    axes.plot([row.mean_s], [place], "o", color="white", markeredgecolor=colour, markersize=5.5, zorder=5)


def _write_numbers(axes: Axes, row: LatencyRow, place: float) -> None:
    """Mean and standard deviation, and how far the mean is off, in columns right of the panel.

    What the trials do not bear out is grey.
    """
    first, unit = _in_unit(row)
    second, sure = "", True
    if row.ratio is not None:
        second, sure = off_words(row, row.ratio), row.is_error
    elif row.kind == "one sample":
        low, high = row.low_s / row.mean_s - 1, row.high_s / row.mean_s - 1
        second = f"{100 * low:+.0f} to {100 * high:+.0f} %".replace("-", "−") if high < 9 else f"up to {high + 1:.2g}×"
    colour = PUBLISHED_COLOUR if row.kind == "published" else "black"
    columns = (f"{first} {unit}", colour), (second.replace(", ", ",\n"), colour if sure else PUBLISHED_COLOUR)
    for (text, own), at in zip(columns, NUMBERS_AT_PT, strict=True):
        axes.annotate(
            text,
            (1, place),
            (at, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8 if "\n" in text else 9,
            linespacing=1,
            color=own,
        )


def _in_unit(row: LatencyRow) -> tuple[str, str]:
    scale, unit = next(
        (scale, unit) for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if row.mean_s >= scale or unit == "µs"
    )
    if row.kind == "one sample":
        return f"{number_text(row.low_s / scale)} to {number_text(row.high_s / scale)}", unit
    mean = number_text(row.mean_s / scale)
    if row.deviation_s is None:
        return mean, unit
    digits = len(mean.partition(".")[2])
    return f"{mean} ± {row.deviation_s / scale:,.{digits}f}", unit


def _scale(axes: Axes, rows: list[LatencyRow]) -> None:
    """Logarithmic where the rows range over more than a factor of 10."""
    low, high = min((row.low_s for row in rows), default=1.0), max((row.high_s for row in rows), default=1.0)
    if high > 10 * low > 0:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.3)
        tick_values(axes.xaxis, EngFormatter("s"), most=6)
    axes.xaxis.set_major_formatter(EngFormatter("s"))

"""Figure of the latency, measured correctly and with common mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.drawing.bars import name_bars
from crossover.drawing.panels import TITLE_LETTERS, published_name
from crossover.drawing.style import (
    INK,
    MISTAKE_COLOUR,
    PUBLISHED_COLOUR,
    SECONDS,
    WIDTH_IN,
    blank_figure,
    log_ticks,
    side_look,
    stacked_axes,
    wrapped,
)
from crossover.drawing.view import Kind, StudyView
from crossover.tables.frames import records, rows_with
from crossover.tables.labels import NAMED_AXES, device_label, name_by, varying
from crossover.tables.registry import CELL_AXES, METHODS
from crossover.text import number_text, seconds_text, with_noun

ROW_IN = 0.33
NAME_LETTERS = 34


def _draw(view: StudyView) -> Figure:
    view = view.on_all_cores()
    shown = []
    for cell in records(view.cells):
        if rows := records(rows_with(view.tables.latencies, CELL_AXES, cell)):
            runs = view.published_on(cell, "latency_s")
            shown.append((cell, rows, [run for run in runs if run["device"] in (None, cell["device"])]))
    if not shown:
        return blank_figure(view.study.title, "No latency was measured.")
    heights = [len(rows) + 1 + len(published) + 2.2 for _, rows, published in shown]
    size = (WIDTH_IN, 0.6 + ROW_IN * sum(heights))
    figure, axes_of_cells = stacked_axes(view.study.title, len(shown), figsize=size, height_ratios=heights)
    named = varying(view.cells, NAMED_AXES)
    for axes, (cell, rows, published) in zip(axes_of_cells, shown, strict=True):
        words = filter(None, [device_label(cell["device"], cell["device_name"]), name_by(cell, named)])
        axes.set_title(wrapped(", ".join(words), TITLE_LETTERS), color=side_look(cell["device"])[0])
        _draw_cell(axes, rows, published, side_look(cell["device"])[0])
    return figure


def _draw_cell(axes: Axes, rows: list[dict[str, Any]], published: list[dict[str, Any]], colour: str) -> None:
    correct = next(row for row in rows if row["kind"] == "right")
    names = [f"{row['kind']}: {METHODS[row['method']]}" for row in rows] + ["mistake: one sample"]
    names += [wrapped(f"published: {published_name(row)}", NAME_LETTERS) for row in published]
    name_bars(axes, names)
    axes.set_xscale("log")
    axes.axvline(correct["mean_s"], color=INK, linewidth=0.8, zorder=0)
    for height, row in enumerate(rows):
        _box(axes, row, height, colour if row["kind"] == "right" else MISTAKE_COLOUR)
        is_significant = row["kind"] == "right" or row["is_error"]
        words = f"{_with_deviation(row['mean_s'], row['deviation_s'])}{_error(row)}{_p99(row)}"
        _write(axes, height, words, INK if is_significant else PUBLISHED_COLOUR)
    axes.hlines(len(rows), correct["low_s"], correct["high_s"], color=MISTAKE_COLOUR, linewidth=2)
    _write(axes, len(rows), f"{seconds_text(correct['low_s'])} to {seconds_text(correct['high_s'])}")
    for height, row in enumerate(published, len(rows) + 1):
        latency_s, deviation_s = row["latency_s"], row["latency_std_s"]
        axes.errorbar([latency_s], [height], xerr=deviation_s, fmt="D", color=PUBLISHED_COLOUR, capsize=3)
        _write(axes, height, _with_deviation(latency_s, deviation_s), PUBLISHED_COLOUR)
    log_ticks(axes.xaxis, SECONDS)
    passes = f"{with_noun(correct['trials'], 'trial')}, {correct['samples']:,} passes"
    axes.set_xlabel(f"latency of a pass ({passes})")


def _box(axes: Axes, row: Mapping[str, Any], height: int, colour: str) -> None:
    edges = {"med": "median_s", "q1": "q1_s", "q3": "q3_s", "whislo": "p5_s", "whishi": "p95_s"}
    thin = {"color": colour, "linewidth": 1.2}
    axes.bxp(
        [{name: row[column] for name, column in edges.items()} | {"fliers": []}],
        positions=[height],
        widths=0.5,
        orientation="horizontal",
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.35, "linewidth": 0},
        medianprops=thin,
        whiskerprops=thin,
        capprops=thin,
    )
    axes.plot([row["mean_s"]], [height], "o", color=colour, markerfacecolor="white", markersize=6, zorder=3)
    if (p99_s := row["latency_p99_s"]) is not None:
        ends = [[p99_s - row["latency_p99_low_s"]], [row["latency_p99_high_s"] - p99_s]]
        axes.errorbar([p99_s], [height], xerr=ends, fmt="s", color=colour, markersize=4, capsize=2, linewidth=0.8)


def _with_deviation(mean_s: float, deviation_s: float | None) -> str:
    return seconds_text(mean_s) + ("" if deviation_s is None else f" ± {seconds_text(deviation_s)}")


def _p99(row: Mapping[str, Any]) -> str:
    if row["kind"] != "right" or row["latency_p99_s"] is None:
        return ""
    low, high = seconds_text(row["latency_p99_low_s"]), seconds_text(row["latency_p99_high_s"])
    return f"; 99 %: {seconds_text(row['latency_p99_s'])} ({low} to {high})"


def _error(row: Mapping[str, Any]) -> str:
    """The error of a mistake, in per cent or as a factor; the correct method has no ratio."""
    if row["ratio"] is None:
        return ""
    ratio = row["ratio"]
    digits = 1 if abs(ratio - 1) < 0.1 else 0
    return f", {100 * (ratio - 1):+.{digits}f} %" if 0.5 < ratio < 2 else f", × {number_text(ratio)}"


def _write(axes: Axes, height: int, words: str, colour: str = INK) -> None:
    axes.text(1.01, height, words, transform=axes.get_yaxis_transform(), va="center", fontsize=9, color=colour)


LATENCY = Kind(
    "Latency measured with the correct methods and with each mistake. Box: quartiles over all trials. Whiskers: 5th to "
    "95th percentile. Ring: mean. Vertical line: the correct mean. Square: 99th percentile with its 95 % interval over "
    "trials (over steps if there is one trial). Right: mean, standard deviation, 99th percentile, and the error of a "
    "mistake (grey: not significant). The error is the ratio of its mean to that of as many correct steps in each "
    "trial; without warm-up, that of the first step to the median of the later half. Grey diamonds: published.",
    _draw,
)

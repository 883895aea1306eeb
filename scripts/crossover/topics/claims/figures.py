"""Figure of time, memory and error, with one row per cell and per published run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from crossover.config.words import BASELINE, DEVICES
from crossover.drawing.panels import published_name
from crossover.drawing.style import GUIDE_COLOUR, INK, PUBLISHED_COLOUR, WIDTH_IN, side_look, use_style, wrapped
from crossover.drawing.view import Kind, StudyView
from crossover.tables.frames import records
from crossover.tables.labels import DEVICE_WORDS, NAMED_AXES, name_by, varying
from crossover.text import bytes_text, number_text, seconds_text, small_text

TIME, MEMORY, ERROR = "time_s", "memory_bytes", "error"
ROW_IN = 0.29
NAME_LETTERS = 38


@dataclass(frozen=True)
class FigureRow:
    """A row of the figure: a cell, a published run, or the heading of a device."""

    label: str
    colour: str
    published: bool = False
    heading: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values by quantity; `low` and `high` are the ends of the time's interval."""
    status: str = ""
    """Status of a cell that is not ok, shown in place of a missing time; otherwise empty."""
    projected: bool = False
    """Whether the time of a run is projected from the time of fewer steps."""


def _draw_figure(view: StudyView) -> Figure:
    view = view.on_all_cores()
    rows = _rows(view)
    texts: dict[str, Callable[[float], str]] = {TIME: _time_text(view), MEMORY: bytes_text, ERROR: small_text}
    shown = [name for name in texts if name == TIME or any(row.values.get(name) is not None for row in rows)]
    use_style()
    size = (WIDTH_IN, 1.4 + ROW_IN * len(rows))
    widths = [1.3 if name == TIME else 1 for name in shown]
    figure, grid = plt.subplots(1, len(shown), figsize=size, sharey=True, squeeze=False, width_ratios=widths)
    figure.suptitle(view.study.title, x=0.01, ha="left")
    labels = {TIME: view.time_label(), MEMORY: _memory_label(view), ERROR: "largest error,\nrelative"}
    labels[TIME] += "\nin brackets: one epoch" * (view.epochs > 1)
    for axes, name in zip(grid[0], shown, strict=True):
        _draw_column(axes, name, rows, texts[name])
        axes.set_xlabel(labels[name], fontsize=9)
    names = [wrapped(row.label, NAME_LETTERS) for row in rows]
    grid[0, 0].set_yticks(range(len(rows)), names, fontsize=8.5, linespacing=0.95)
    grid[0, 0].set_ylim(len(rows) - 0.4, -0.6)
    for text, row in zip(grid[0, 0].get_yticklabels(), rows, strict=True):
        text.set(color=row.colour if row.heading or row.published else INK, weight="bold" if row.heading else "normal")
    return figure


def _rows(view: StudyView) -> list[FigureRow]:
    """For each device: a heading, each cell followed by the published runs that match it, then the other runs."""
    named = varying(view.cells, NAMED_AXES) or ["precision"]
    rows: list[FigureRow] = []
    for device in DEVICES:
        unmatched = [run for run in records(view.published) if run["device"] == device]
        cells = records(view.cells[view.cells["device"] == device])
        if not cells and not unmatched:
            continue
        title = view.device_title(device) if cells else f"{DEVICE_WORDS[device]}, not measured"
        rows.append(FigureRow(title, side_look(device)[0], heading=True))
        for cell in cells:
            rows.append(_cell_row(view, cell, name_by(cell, named) or DEVICE_WORDS[device]))
            matching = [run for run in unmatched if _matches(run, cell, named)]
            for run in matching:
                name = published_name(run) if len(matching) > 1 else run["hardware"] or "published"
                rows.append(_published_row(view, run, cell, name))
            unmatched = [run for run in unmatched if run not in matching]
        for run in unmatched:
            words = [run["label"] or name_by(run, NAMED_AXES), run["hardware"]]
            rows.append(_published_row(view, run, run, ", ".join(filter(None, words)) or "published"))
    return rows


def _matches(run: Mapping[str, Any], cell: Mapping[str, Any], named: Sequence[str]) -> bool:
    """Whether a published run matches a cell on every axis that the run states."""
    if "size" in named and run["size"] is None:
        return False
    return all(run[axis] == cell[axis] for axis in NAMED_AXES if run.get(axis) is not None)


def _cell_row(view: StudyView, cell: Mapping[str, Any], label: str) -> FigureRow:
    steps = view.run_steps(cell["batch_size"])
    times = {name: cell[f"step_time{end}_s"] for name, end in ((TIME, ""), ("low", "_low"), ("high", "_high"))}
    values = {name: None if value is None else value * (steps or 1) for name, value in times.items()}
    values |= {MEMORY: cell[view.memory_column(cell["device"])], ERROR: cell["max_relative_error"]}
    projected = steps is not None and (cell["timed_steps"] or 0) < steps
    status = "" if cell["status"] == "ok" else cell["status"]
    return FigureRow(label, side_look(cell["device"])[0], values=values, status=status, projected=projected)


def _published_row(view: StudyView, run: Mapping[str, Any], cell: Mapping[str, Any], label: str) -> FigureRow:
    memory = run["peak_allocated_bytes"] or run["device_used_bytes"]
    values = {TIME: view.published_time_s(run, cell), MEMORY: memory, ERROR: run["max_relative_error"]}
    return FigureRow(label, PUBLISHED_COLOUR, published=True, values=values)


def _time_text(view: StudyView) -> Callable[[float], str]:
    if view.study.steps_per_run is None:
        return seconds_text
    epochs = view.epochs
    return lambda seconds: number_text(seconds) + (f" ({seconds_text(seconds / epochs)})" * (epochs > 1))


def _memory_label(view: StudyView) -> str:
    devices = set(view.cells["device"])
    on_gpu = [view.memory_column(device) for device in devices - {BASELINE}]
    words = ["GPU: all in use" if "device_used_bytes" in on_gpu else "GPU: peak of tensors"] if on_gpu else []
    words += ["CPU: growth of the process"] if BASELINE in devices else []
    return "\n".join(["memory", *words])


def _draw_column(axes: Axes, name: str, rows: Sequence[FigureRow], text: Callable[[float], str]) -> None:
    positive = [row.values[name] for row in rows if row.values.get(name)]
    high = max(positive, default=1)
    if positive and high > 10 * min(positive):
        span = high / min(positive)
        axes.set(xscale="log", xlim=(min(positive) / span**0.1, high * span**0.9))
    else:
        axes.set_xlim(0, 1.9 * high)
    axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    near: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 9}
    for height, row in enumerate(rows):
        if row.heading:
            continue
        axes.axhline(height, color=GUIDE_COLOUR, linewidth=0.8, zorder=0)
        value = row.values.get(name)
        if value is None:
            left = ("axes fraction", "data")
            status = row.status if name == TIME else ""
            axes.annotate(status, (0, height), (6, 0), left, weight="bold", color=row.colour, **near)
            continue
        right = value
        if name == TIME and row.values.get("low") is not None:
            right = min(row.values["high"], 2 * high)
            axes.hlines(height, row.values["low"], right, color=row.colour, linewidth=2.5, zorder=2)
        face = "white" if name == TIME and row.projected else row.colour
        marker = "D" if row.published else "o"
        axes.plot([value], [height], marker, color=row.colour, markersize=6, markerfacecolor=face, zorder=3)
        colour = PUBLISHED_COLOUR if row.published else INK
        axes.annotate(text(value), (right, height), (7, 0), color=colour, **near)


COMPARISON = Kind(
    "One row per cell: its time with the 95 % interval over trials, its memory, and its error if known. "
    "Hollow: projected from fewer steps than a run has. Grey diamonds: published, on the hardware named.",
    _draw_figure,
)

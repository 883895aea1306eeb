"""Figure of time against memory: what each way to save one costs of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from crossover.answers.naming import NAMED_AXES, name_by, varying
from crossover.config.words import BASELINE, DEVICES
from crossover.figures.comparison_rows import gpu_memory_column
from crossover.figures.curves import Tag, write_tags
from crossover.figures.log_ticks import tick_values
from crossover.figures.panels import stacked_panels
from crossover.figures.style import DEVICE_COLOURS, PUBLISHED_COLOUR, bytes_text, device_label, seconds_text, spaced
from crossover.figures.views import StudyView
from crossover.tables.frames import device_name_of, records

Point = tuple[float, float]


def plot_trade_off(view: StudyView) -> Figure:
    """Time of a sample over peak memory, log-log, a panel a device; the grey line joins what nothing beats in both."""
    named = varying(view.cells, NAMED_AXES) or ["precision"]
    devices = [device for device in DEVICES if device in set(view.cells["device"])]
    tags = {device: [*_ours(view, device, named), *_published(view, device)] for device in devices}
    heights = [max(2.6, 0.4 + 0.17 * len(own)) for own in tags.values()]
    titles = [device_label(device, device_name_of(view.cells[view.cells["device"] == device])) for device in devices]
    figure, panels = stacked_panels(view.title, heights, [tag.text for own in tags.values() for tag in own], titles)
    for axes, device in zip(panels, devices, strict=True):
        axes.set(ylabel="time of a sample")
        axes.set_xlabel("\n".join([_memory_words(view, device), *_sources(view, device)]), labelpad=2)
        _draw(axes, tags[device], DEVICE_COLOURS[device])
    for axes, own in zip(panels, tags.values(), strict=True):
        tick_values(axes.yaxis, EngFormatter("s"))
        tick_values(axes.xaxis, EngFormatter("B"), most=6)
        write_tags(axes, own)
    return figure


def front(points: Sequence[Point]) -> list[Point]:
    """Those points that no other beats in memory without being slower, or the other way round, by rising memory."""
    kept: list[Point] = []
    for memory, time in sorted(points):
        if not kept or time < kept[-1][1]:
            kept.append((memory, time))
    return kept


def _memory_words(view: StudyView, device: str) -> str:
    if device == BASELINE:
        return "memory: growth of the process at its peak"
    whole = gpu_memory_column(view) == "device_used_bytes"
    return "memory: all that is in use on the GPU" if whole else "memory: peak that tensors needed"


def _ours(view: StudyView, device: str, named: list[str]) -> list[Tag]:
    memory = "rss_growth_bytes" if device == BASELINE else gpu_memory_column(view)
    tags = []
    for cell in records(view.cells[view.cells["device"] == device]):
        name, colour = name_by(cell, named), DEVICE_COLOURS[device]
        if cell["samples_per_s"] and cell[memory]:
            tags.append(_tag(name, (float(cell[memory]), 1 / cell["samples_per_s"]), colour))
        else:
            why = "no memory known" if cell["samples_per_s"] else cell["status"]
            tags.append(Tag(f"{name}: {why}", colour))
    return tags


def _published(view: StudyView, device: str) -> list[Tag]:
    results = [] if view.published_results is None else records(view.published_results)
    tags = []
    for result in results:
        memory = result.get("peak_allocated_bytes") or result.get("device_used_bytes")
        if result.get("device") == device and memory and result.get("samples_per_s"):
            name = spaced(result.get("label") or "published")
            tags.append(_tag(name, (float(memory), 1 / result["samples_per_s"]), PUBLISHED_COLOUR))
    return tags


def _sources(view: StudyView, device: str) -> list[str]:
    """The hardware of the published results, once for all: there are as many labels as a panel can bear."""
    if view.published_results is None or not _published(view, device):
        return []
    results = view.published_results
    names = results.loc[(results["device"] == device).fillna(False), "hardware"].dropna().unique()
    return [f"diamonds: published, {', '.join(names)}"] if len(names) else []


def _tag(name: str, point: Point, colour: str) -> Tag:
    return Tag(f"{name}: {bytes_text(point[0])}, {seconds_text(point[1])}", colour, point)


def _draw(axes: Axes, tags: Sequence[Tag], colour: str) -> None:
    for marker, own in (("o", colour), ("D", PUBLISHED_COLOUR)):
        points = [tag.point for tag in tags if tag.point and tag.colour == own]
        axes.plot(*_columns(points), marker, color=own, markersize=6 if marker == "o" else 5, zorder=3)
        if marker == "o":
            axes.step(*_columns(front(points)), where="post", color=PUBLISHED_COLOUR, linewidth=1, zorder=1)


def _columns(points: Sequence[Point]) -> tuple[list[Any], list[Any]]:
    table = pd.DataFrame(points, columns=["memory", "time"])
    return table["memory"].tolist(), table["time"].tolist()

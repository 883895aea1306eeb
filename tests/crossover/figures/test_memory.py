"""The figure of memory: peaks, the wall, the split, marks; and bars where there is one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from crossover.figures.memory import bar_edges, plot_memory
from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS
from matplotlib.axes import Axes

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def gpu(row: Row, size: int, peak: int, **values: Any) -> dict[str, Any]:
    """A quarter parameters, three quarters activations; of 1000 bytes."""
    split = dict.fromkeys(PARTS, 0) | {"parameter_bytes": peak // 4, "activation_bytes": 3 * peak // 4}
    return row(
        **{"device": "cuda", "size": size, "peak_allocated_bytes": peak, "device_memory_bytes": 1000} | split | values
    )


LOST: dict[str, Any] = {"status": "oom", "step_time_s": None, "flags": None, "peak_allocated_bytes": None}


def test_peaks_stand_below_the_wall_and_what_ran_out_is_marked(row: Row, view_of: Views) -> None:
    view = view_of([gpu(row, 2, 100), gpu(row, 4, 400), gpu(row, 8, 0) | LOST])
    peaks, split = plot_memory(view).axes
    (line,) = [line for line in peaks.lines if len(np.asarray(line.get_xdata())) == 2 and line.get_marker() == "o"]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([2, 4], [100, 400])
    assert {"400 B", "all the memory of this GPU: 1.00 kB", "oom"} <= set(texts(peaks))
    assert any(list(line.get_ydata()) == [1000, 1000] for line in peaks.lines)
    assert peaks.get_ylim()[1] == 4000
    heights = [bar.get_height() for bar in split.patches]
    assert heights == pytest.approx([0.25, 0.25, 0.75, 0.75])
    assert texts(split) == ["parameters 25 %", "activations 75 %"]


def test_a_column_a_device_and_the_lines_that_need_most_are_split(row: Row, view_of: Views) -> None:
    rows = [
        gpu(row, size, peak * size, precision=precision)
        for precision, peak in {"fp32": 20, "tf32": 10, "bf16": 30}.items()
        for size in (2, 4)
    ]
    rows += [row(size=size, base_rss_bytes=0, peak_rss_bytes=7) for size in (2, 4)]
    cpu, peaks, *splits = plot_memory(view_of(rows, precisions=["fp32", "tf32", "bf16"])).axes
    assert [axes.get_title(loc="left") for axes in (cpu, peaks)] == ["CPU (Brand C1)", "GPU (Brand G1)"]
    assert set(texts(peaks)) >= {"fp32: 80 B", "tf32: 40 B", "bf16: 120 B"}
    assert [axes.get_title(loc="left") for axes in splits] == [
        "what it is for, where most is needed: fp32",
        "what it is for, where most is needed: bf16",
    ]


def test_with_one_size_each_cell_is_a_bar_that_ends_at_its_peak(row: Row, view_of: Views) -> None:
    rows = [gpu(row, 4, 400), gpu(row, 4, 80, precision="bf16"), gpu(row, 4, 0, precision="fp64") | LOST]
    (axes,) = plot_memory(view_of(rows, precisions=["fp32", "bf16", "fp64"])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fp32", "bf16", "fp64"]
    assert texts(axes) == ["400 B", "80 B", "× oom"]
    ends = {(bar.get_y() + bar.get_height() / 2, bar.get_x() + bar.get_width()) for bar in axes.patches}
    assert {(0.0, 400.0), (1.0, 80.0), (2.0, 0.0)} <= ends
    assert "upright line: 1.00 kB" in axes.get_xlabel()
    assert [list(line.get_xdata()) for line in axes.lines] == [[1000, 1000]]


def test_a_far_capacity_is_said_only(row: Row, view_of: Views) -> None:
    (axes,) = plot_memory(view_of([gpu(row, 4, 40)])).axes
    assert "beyond this axis: 1.00 kB" in axes.get_xlabel()
    assert not axes.lines
    assert axes.get_xlim() == (0, 50)


def test_each_of_several_machines_has_a_wall_of_its_own(row: Row, view_of: Views) -> None:
    half = {"machine": "b", "device_memory_bytes": 500}
    rows = [gpu(row, size, 100 * size, **own) for size in (2, 4) for own in ({"machine": "a"}, half)]
    peaks, *_ = plot_memory(view_of(rows)).axes
    assert {"all the memory of the GPU of b: 500 B", "all the memory of the GPU of a: 1.00 kB"} <= set(texts(peaks))
    levels = [list(line.get_ydata()) for line in peaks.lines]
    assert [500, 500] in levels
    assert [1000, 1000] in levels
    (bars,) = plot_memory(view_of([one for one in rows if one["size"] == 4])).axes
    assert [line.get_xdata()[0] for line in bars.lines] == [500, 1000]
    assert "all the memory of the GPU of b, upright line: 500 B\nall the memory of the GPU of a" in bars.get_xlabel()
    alike = [one | {"device_memory_bytes": 1000} for one in rows]
    assert "all the memory of the GPU of a and b: 1.00 kB" in texts(plot_memory(view_of(alike)).axes[0])


def test_without_any_memory_the_figure_says_so(row: Row, view_of: Views) -> None:
    figure = plot_memory(view_of([row(size=2), row(size=4)]))
    assert not figure.axes
    assert "memory of none" in figure.texts[1].get_text()


def test_bars_leave_gaps_to_their_neighbours() -> None:
    """Places e, e^2 and e^4: gaps of 1, 1 and 2 on the log axis, their median 1.5; each reaches 0.4 of the nearest."""
    lefts, rights = bar_edges(np.exp([1, 2, 4]).tolist())
    assert np.log(lefts) == pytest.approx([0.6, 1.6, 3.4])
    assert np.log(rights) == pytest.approx([1.4, 2.4, 4.6])

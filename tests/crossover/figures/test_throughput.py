from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crossover.figures.status_marks import MARK
from crossover.figures.throughput import plot_throughput
from crossover.figures.views import StudyView
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS
from matplotlib.axes import Axes

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def test_samples_per_second_with_the_optimum(row: Row, view_of: Views) -> None:
    """10 samples in 1 s, 100 in 2 s, 1000 in 40 s: 10, 50 and 25 samples a second."""
    times = {10: 1.0, 100: 2.0, 1000: 40.0}
    rows = [row(batch_size=batch, step_time_s=time) for batch, time in times.items()]
    (axes,) = plot_throughput(view_of(rows)).axes
    line, ring = axes.lines
    assert np.asarray(line.get_xydata()).tolist() == [[10, 10], [100, 50], [1000, 25]]
    assert np.asarray(ring.get_xydata()).tolist() == [[100, 50]]
    assert texts(axes) == ["best: 50/s at batch 100"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_a_panel_a_device_and_a_line_for_whatever_varies(row: Row, view_of: Views) -> None:
    rows = [
        row(device=device, batch_size=batch, variant=variant, execution=execution)
        for device in ("cuda", "cpu")
        for batch in (1, 8)
        for variant in ("plain", "channels_last")
        for execution in ("eager", "compile")
    ]
    figure = plot_throughput(view_of(rows, variants=["plain", "channels_last"], executions=["eager", "compile"]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["CPU (Brand C1)", "GPU (Brand G1)"]
    assert [text.split("\n")[0] for text in texts(figure.axes[1])] == [
        "plain, eager",
        "plain, compile",
        "channels last, eager",
        "channels last, compile",
    ]


def test_the_first_batch_that_failed_is_named(row: Row, view_of: Views) -> None:
    lost: dict[str, Any] = {"status": "oom", "step_time_s": None, "flags": None}
    rows = [row(batch_size=8), row(batch_size=4096, **lost), row(batch_size=2048, **lost)]
    (axes,) = plot_throughput(view_of(rows)).axes
    assert texts(axes) == ["best: 8,000/s at batch 8, oom at 2,048", MARK, MARK, "oom"]


def test_published_rates_stand_in_their_devices_panel(row: Row, view_of: Views) -> None:
    rows = [row(device=device, batch_size=batch) for device in ("cpu", "cuda") for batch in (8, 512)]
    published = [
        {"device": "cuda", "hardware": "RTX", "variant": variant, "batch_size": 512, "samples_per_s": rate}
        for variant, rate in (("plain", 8926.0), ("channels_last", 9832.0))
    ]
    cpu, gpu = plot_throughput(view_of(rows, published)).axes
    assert {"RTX, plain, 8,926/s", "RTX, channels last, 9,832/s"} <= set(texts(gpu))
    assert not [text for text in texts(cpu) if "RTX" in text]
    diamonds = [np.asarray(line.get_ydata()).tolist() for line in gpu.lines if line.get_marker() == "D"]
    assert diamonds == [[8926], [9832]]


def test_published_rates_that_hardware_and_axes_leave_alike_have_their_labels(row: Row, view_of: Views) -> None:
    """Two of one batch, told apart by the source's label; a third of another batch and a fourth of other hardware."""
    rows = [row(device="cuda", batch_size=batch) for batch in (8, 512)]
    published = [
        {"device": "cuda", "hardware": hardware, "label": label, "batch_size": batch, "samples_per_s": rate}
        for hardware, label, batch, rate in (
            ("RTX", "torch 1.13", 512, 1000.0),
            ("RTX", "torch 2.0", 512, 2000.0),
            ("RTX", "torch 2.0", 256, 3000.0),
            ("T4", "torch 2.0", 512, 4000.0),
        )
    ]
    (axes,) = plot_throughput(view_of(rows, published)).axes
    said = {text for text in texts(axes) if text.startswith(("RTX", "T4"))}
    assert said == {"RTX, torch 1.13, 1,000/s", "RTX, torch 2.0, 2,000/s", "RTX, 3,000/s", "T4, 4,000/s"}


def test_the_interval_is_the_times_turned_round(row: Row, view_of: Views) -> None:
    rows = [row(trial=trial, batch_size=batch, step_time_s=0.1 * trial) for trial in (1, 2) for batch in (1, 10)]
    view = view_of(rows)
    (axes,) = plot_throughput(view).axes
    (band,) = axes.collections
    heights = set(np.round(band.get_paths()[0].vertices[:, 1], 9))
    for cell in view.cells.to_dict("records"):
        for end in ("low", "high"):
            assert round(cell["batch_size"] / cell[f"step_time_{end}_s"], 9) in heights
    assert axes.get_ylabel() == "samples per second"


def searched(row: dict[str, Any], **found: Any) -> dict[str, Any]:
    """A search for the line of a row, which found that 4096 samples fit into 8 GB."""
    plain = {"status": "ok", "largest": 4096, "smallest_failing": 4097, "memory_limit_bytes": 8 * 10**9}
    axes = {axis: row[axis] for axis in SEARCH_AXES}
    return dict.fromkeys(SEARCH_COLUMNS) | axes | plain | {"throughput_samples_per_s": 20_000.0} | found


def squares(axes: Axes) -> list[list[list[float]]]:
    hollow = [line for line in axes.lines if line.get_marker() == "s" and line.get_markerfacecolor() == "none"]
    return [np.asarray(line.get_xydata()).tolist() for line in hollow]


def test_a_hollow_square_marks_the_largest_batch_of_its_line(row: Row, view_of: Views) -> None:
    rows = [row(batch_size=batch, variant=variant) for batch in (8, 64) for variant in ("plain", "channels_last")]
    view = view_of(rows, variants=["plain", "channels_last"])
    (without,) = plot_throughput(view).axes
    assert squares(without) == []
    searches = pd.DataFrame([searched(rows[1]), searched(rows[1] | {"device": "cuda"}, largest=9)])
    (axes,) = plot_throughput(replace(view, searches=searches)).axes
    assert squares(axes) == [[[4096, 20_000]]]
    joints = [line for line in axes.lines if np.asarray(line.get_xdata()).tolist() == [64, 4096]]
    assert [np.asarray(line.get_ydata()).tolist() for line in joints] == [pytest.approx([64_000, 20_000])]
    assert texts(axes) == [
        "plain\nbest: 64,000/s at batch 64",
        "channels last\nbest of the timed sizes: 64,000/s at batch 64\nlargest batch that fits: 4,096 (limit 8 GB)",
    ]
    assert axes.get_xlim()[1] > 4096
    assert axes.get_ylim()[0] < 8000 <= 64_000 < axes.get_ylim()[1]


def test_without_a_throughput_the_largest_batch_is_said_only(row: Row, view_of: Views) -> None:
    untimed = {"throughput_samples_per_s": None}
    stopped = {**untimed, "largest": None, "smallest_failing": None, "status": "timeout"}
    partly = {**stopped, "largest_fitting": 2048, "reason": "batch 4096: late"}
    for found, said in (
        (untimed, "largest batch that fits: 4,096 (limit 8 GB)"),
        (stopped, "not found: timeout"),
        (partly, "largest batch: at least 2,048 (limit 8 GB), then timeout: batch 4096: late"),
    ):
        searches = pd.DataFrame([searched(row(), **found)])
        (axes,) = plot_throughput(replace(view_of([row(batch_size=8)]), searches=searches)).axes
        assert squares(axes) == []
        assert said in texts(axes)[0]


def test_a_line_without_any_time_still_has_its_square(row: Row, view_of: Views) -> None:
    lost = row(status="timeout", step_time_s=None, flags=None)
    (axes,) = plot_throughput(replace(view_of([lost]), searches=pd.DataFrame([searched(lost)]))).axes
    assert squares(axes) == [[[4096, 20_000]]]
    assert texts(axes) == ["timeout at 100\nlargest batch that fits: 4,096 (limit 8 GB)"]


def test_a_wide_interval_does_not_hide_the_lines(row: Row, view_of: Views) -> None:
    rows = [row(trial=trial, batch_size=batch, step_time_s=0.1 * 3**trial) for trial in (1, 2) for batch in (1, 10)]
    view = view_of(rows)
    (axes,) = plot_throughput(view).axes
    rates = view.cells["samples_per_s"]
    assert view.cells["step_time_high_s"].max() > 100
    assert axes.get_ylim() == (rates.min() / 2, rates.max() * 2)

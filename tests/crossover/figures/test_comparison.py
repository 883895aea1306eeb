"""A comparison is asked for its rows, and its figure for what is written and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from crossover.figures.comparison import plot_comparison
from crossover.figures.comparison_rows import comparison_rows
from crossover.figures.views import StudyView
from matplotlib.axes import Axes

from crossover.figures.style import PUBLISHED_COLOUR

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]

T4 = {"device": "cuda", "batch_size": 100, "hardware": "Tesla T4"}


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def named_rows(axes: Axes) -> list[str]:
    """The words left of the panel, from top to bottom."""
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    return [label.get_text() for _, label in sorted(ticks, key=lambda tick: tick[0])]


def test_a_published_result_stands_below_the_cell_that_it_is_of(row: Row, view_of: Views) -> None:
    rows = [row(device="cuda", precision=name, step_time_s=0.01) for name in ("amp-fp16", "fp32")]
    published = [T4 | {"precision": "amp-fp16", "run_time_s": 2.5}, T4 | {"precision": "fp32", "run_time_s": 7.0}]
    view = view_of(rows, published, steps_per_run=150, precisions=["fp32", "amp-fp16"])
    table = comparison_rows(view)
    assert table["label"].tolist() == ["fp32", "Tesla T4", "amp-fp16", "Tesla T4"]
    assert table["time_s"].tolist() == pytest.approx([1.5, 7.0, 1.5, 2.5])
    assert named_rows(plot_comparison(view).axes[0]) == [
        "GPU (Brand G1)",
        "fp32",
        "Tesla T4",
        "amp-fp16",
        "Tesla T4",
    ]


def test_a_published_result_of_no_cell_here_has_a_row_of_its_own(row: Row, view_of: Views) -> None:
    published = [T4 | {"precision": "bf16", "label": "run 3", "step_time_s": 0.1}]
    view = view_of([row(device="cpu")], published)
    assert comparison_rows(view)["label"].tolist() == ["fp32", "run 3, Tesla T4"]
    assert named_rows(plot_comparison(view).axes[0])[2] == "GPU, not measured"


def test_a_published_throughput_becomes_the_time_of_a_step_or_of_a_run(row: Row, view_of: Views) -> None:
    """50 samples a second at batch 100: 2 s a step; an epoch of 950 samples takes 10 steps."""
    published = [T4 | {"samples_per_s": 50.0}]
    rows = [row(device="cuda", step_time_s=0.5)]
    assert comparison_rows(view_of(rows, published))["time_s"].tolist() == pytest.approx([0.5, 2])
    run = {"epochs": 1, "samples": 950}
    assert comparison_rows(view_of(rows, published, steps_per_run=run))["time_s"].tolist() == pytest.approx([5, 20])


def test_a_run_measured_by_fewer_steps_is_projected(row: Row, view_of: Views) -> None:
    rows = [
        row(device="cpu", step_time_s=1.0, timed_steps=5),
        row(device="cuda", step_time_s=0.01, timed_steps=150),
    ]
    axes = plot_comparison(view_of(rows, steps_per_run=150)).axes[0]
    assert texts(axes) == ["150, projected", "1.50"]
    hollow = [line.get_markerfacecolor() == "white" for line in axes.lines]
    assert hollow == [True, False]
    assert texts(plot_comparison(view_of(rows)).axes[0]) == ["1.00 s", "10.0 ms"]


def test_a_run_of_several_epochs_also_says_the_time_of_one(row: Row, view_of: Views) -> None:
    """950 samples at batch 100 are 10 steps an epoch: of 0.5 s each 100 s for 20 epochs, 5 s for one."""
    rows = [row(device="cuda", step_time_s=0.5, timed_steps=3)]
    view = view_of(rows, [T4 | {"run_time_s": 240.0}], steps_per_run={"epochs": 20, "samples": 950})
    axes = plot_comparison(view).axes[0]
    assert texts(axes) == ["100 (5.00 s), projected", "240 (12.0 s)"]
    assert axes.get_xlabel().startswith("time for 20 epochs in s\n")
    assert axes.get_xlabel().endswith("in brackets: one epoch")
    axes = plot_comparison(view_of(rows, steps_per_run={"epochs": 1, "samples": 950})).axes[0]
    assert texts(axes) == ["5.00, projected"]
    assert "brackets" not in axes.get_xlabel()


def test_the_ticks_of_a_logarithmic_axis_end_where_the_results_do(row: Row, view_of: Views) -> None:
    """Runs of 20 epochs of 10 steps: 2 s to 6000 s; the room to the right of them is for their numbers."""
    rows = [
        row(precision=name, step_time_s=time, timed_steps=1, base_rss_bytes=0, peak_rss_bytes=10**9)
        for name, time in (("fp32", 30.0), ("tf32", 0.01))
    ]
    times, memory = plot_comparison(view_of(rows, steps_per_run={"epochs": 20, "samples": 950})).axes
    assert times.get_xscale() == "log"
    assert {10, 1000} <= set(times.get_xticks()) <= {10, 100, 1000}
    assert times.get_xlim()[1] > 10_000
    assert times.get_position().width > 1.2 * memory.get_position().width


def test_memory_is_of_tensors_on_a_gpu_and_growth_on_the_cpu(row: Row, view_of: Views) -> None:
    rows = [
        row(device="cpu", base_rss_bytes=400_000_000, peak_rss_bytes=1_900_000_000),
        row(device="cuda", peak_allocated_bytes=1_350_681_600, device_used_bytes=3_000_000_000),
    ]
    _, memory = plot_comparison(view_of(rows)).axes
    assert texts(memory) == ["1.50 GB", "1.35 GB"]
    assert "CPU: growth of the process" in memory.get_xlabel()
    assert "GPU: peak that tensors needed" in memory.get_xlabel()


def test_memory_of_the_whole_device_is_compared_with_the_same(row: Row, view_of: Views) -> None:
    rows = [row(device="cuda", peak_allocated_bytes=10**9, device_used_bytes=3 * 10**9)]
    _, memory = plot_comparison(view_of(rows, [T4 | {"device_used_bytes": 14.949e9}])).axes
    assert texts(memory) == ["3.00 GB", "14.9 GB"]
    assert "all that is in use" in memory.get_xlabel()


def test_an_error_has_a_panel_where_one_is_known(row: Row, view_of: Views) -> None:
    rows = [row(device="cuda", precision="tf32", max_relative_error=0.0022), row(device="cuda")]
    figure = plot_comparison(view_of(rows, [T4 | {"precision": "fp32", "max_relative_error": 3.9e-5}]))
    assert [axes.get_xlabel().split("\n")[0] for axes in figure.axes] == ["time per step", "largest error,"]
    assert sorted(texts(figure.axes[1])) == ["0.0022", "3.9 × 10⁻⁵"]


def test_a_cell_without_a_time_says_how_it_ended(row: Row, view_of: Views) -> None:
    rows = [row(precision="fp32"), row(precision="fp16", status="timeout", step_time_s=None, flags=None)]
    axes = plot_comparison(view_of(rows)).axes[0]
    assert texts(axes) == ["1.00 ms", "timeout"]
    assert axes.texts[1].xy[1] == axes.get_yticks()[1]


@pytest.mark.parametrize(("slow_s", "scale"), [(0.09, "linear"), (0.11, "log")])
def test_beyond_a_factor_of_ten_the_axis_is_logarithmic(row: Row, view_of: Views, slow_s: float, scale: str) -> None:
    rows = [row(precision="fp32", step_time_s=slow_s), row(precision="tf32", step_time_s=0.01)]
    axes = plot_comparison(view_of(rows)).axes[0]
    assert axes.get_xscale() == scale
    assert (axes.get_xlim()[0] == 0) == (scale == "linear")


def test_the_interval_over_trials_is_drawn_and_published_is_grey(row: Row, view_of: Views) -> None:
    rows = [row(device="cuda", trial=trial, step_time_s=time) for trial, time in ((1, 0.01), (2, 0.012))]
    view = view_of(rows, [T4 | {"step_time_s": 0.05}])
    axes = plot_comparison(view).axes[0]
    (cell,) = view.cells.to_dict("records")
    spans = [segment[:, 0].tolist() for lines in axes.collections for segment in lines.get_segments()]
    assert [cell["step_time_low_s"], cell["step_time_high_s"]] in spans
    assert [line.get_marker() for line in axes.lines if line.get_color() == PUBLISHED_COLOUR] == ["D"]


def test_numbers_stay_within_their_panel(row: Row, view_of: Views) -> None:
    rows = [
        row(precision=name, step_time_s=time, timed_steps=1, base_rss_bytes=0, peak_rss_bytes=10**9)
        for name, time in (("fp32", 1.0), ("tf32", 300.0))
    ]
    figure = plot_comparison(view_of(rows, steps_per_run=1000))
    figure.canvas.draw()
    for axes in figure.axes:
        right = axes.get_window_extent().x1
        assert all(text.get_window_extent().x1 <= right + 2 for text in axes.texts)


def test_a_wide_interval_does_not_hide_the_others(row: Row, view_of: Views) -> None:
    """Two trials a factor of 2 apart have an interval that ends at 115 times their mean (t = 12.7)."""
    rows = [row(precision="fp32", trial=trial, step_time_s=time) for trial, time in ((1, 0.01), (2, 0.02))]
    view = view_of([*rows, row(precision="tf32", step_time_s=0.012)])
    assert view.cells["step_time_high_s"].max() > 1
    axes = plot_comparison(view).axes[0]
    assert axes.get_xlim()[1] < 0.1
    assert max(segment[:, 0].max() for segment in axes.collections[1].get_segments()) == pytest.approx(
        2 * 0.02 / 2**0.5
    )

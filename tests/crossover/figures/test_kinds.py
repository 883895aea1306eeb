"""What each kind of figure draws, read back from its axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover.figures.kinds.trade_off import front
from crossover.figures.registry import FIGURES
from crossover.figures.view import StudyView

SIZES = {2: 100, 4: 1_000, 8: 10_000}
Row = Callable[..., dict[str, Any]]
Laws = Callable[..., pd.DataFrame]
View = Callable[..., StudyView]


def drawn(kind: str, view: StudyView) -> Figure:
    figure = FIGURES[kind].draw(view)
    figure.draw_without_rendering()
    return figure


def named(axes: Axes) -> dict[str, Any]:
    """What the legend names."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def words_of(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_times_draw_a_line_a_device_the_trials_and_the_crossover(power_laws: Laws, view_of: View) -> None:
    (axes,) = drawn("times", view_of(power_laws(SIZES, trials=3))).axes[:1]
    found = named(axes)
    assert list(found) == ["CPU (Brand C1)", "GPU (Brand G1)", next(name for name in found if "crossover" in name)]
    cpu = found["CPU (Brand C1)"]
    assert cpu.get_xdata() == pytest.approx([100, 1_000, 10_000])
    assert cpu.get_ydata() == pytest.approx([1e-4, 1e-3, 1e-2])
    crossover = found[list(found)[2]]
    assert crossover.get_xdata()[0] == pytest.approx(1_000, rel=1e-6)
    dots = [len(points.get_offsets()) for points in axes.collections if hasattr(points, "get_sizes")]
    assert dots.count(9) == 2  # three trials of three sizes, on both devices
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_times_of_a_run_and_what_was_published(power_laws: Laws, view_of: View) -> None:
    published = [{"size": size, "device": "cuda", "hardware": "Old G", "run_time_s": 1e3} for size in SIZES]
    view = view_of(power_laws(SIZES), published, x_axis="size", steps_per_run=1_000, published={"crossover": [2, 4]})
    (axes,) = drawn("times", view).axes[:1]
    found = named(axes)
    assert found["CPU (Brand C1)"].get_ydata() == pytest.approx([0.1, 1, 10])
    assert found["published: GPU (Old G)"].get_ydata() == pytest.approx([1e3] * 3)
    assert axes.get_ylim()[1] > 1e3  # in view, though our times lie far below
    assert "published: 2 to 4" in found
    assert axes.get_ylabel().startswith("time for 1,000 steps in s")


def test_each_protocol_has_a_panel_and_each_precision_a_colour(power_laws: Laws, view_of: View) -> None:
    tables = [
        power_laws(SIZES, protocol=protocol, precision=precision)
        for protocol in ("as_published", "resident")
        for precision in ("fp32", "bf16")
    ]
    figure = drawn("times", view_of(pd.concat(tables)))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == ["as published", "data resident on the device"]
    lines = [line for line in panels[0].get_lines() if len(line.get_xdata()) == 3]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 4


def test_a_lost_size_has_a_cross_and_its_line_says_how_it_ended(row: Row, power_laws: Laws, view_of: View) -> None:
    lost = pd.DataFrame([row(size=16, parameters=100_000, device="cuda", status="oom", step_time_s=None)])
    (axes,) = drawn("times", view_of(pd.concat([power_laws(SIZES), lost]))).axes[:1]
    assert "GPU (Brand G1), oom at 16" in named(axes)
    crosses = [line for line in axes.get_lines() if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[100_000]]


def test_refined_sizes_are_hollow(power_laws: Laws, view_of: View) -> None:
    view = view_of(power_laws(SIZES), sizes=[2, 8])
    (axes,) = drawn("times", view).axes[:1]
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert {tuple(line.get_xdata()) for line in hollow} == {(1_000.0,)}


def test_intervals_are_bands_and_wide_ones_leave_the_panel(row: Row, view_of: View) -> None:
    seconds = {2: (1e-3, 1e-3 * 1.001), 4: (1e-3, 1e-1)}
    rows = [
        row(size=size, parameters=size * 100, trial=trial, step_time_s=time)
        for size, times in seconds.items()
        for trial, time in enumerate(times, 1)
    ]
    (axes,) = drawn("times", view_of(pd.DataFrame(rows))).axes[:1]
    low, high = axes.get_ylim()
    assert low == pytest.approx(1e-3 / 1.6, rel=0.01)
    assert high == pytest.approx(1e-2 * 1.6, rel=0.01)  # the geometric mean, not the interval's end


def test_speedups_are_the_ratios_with_a_level_at_1(power_laws: Laws, view_of: View) -> None:
    (axes,) = drawn("speedups", view_of(power_laws(SIZES, trials=2))).axes[:1]
    assert named(axes)["GPU (Brand G1)"].get_ydata() == pytest.approx([0.1, 1, 10])
    assert "equally fast" in words_of(axes)


def test_speedups_over_fewer_cores_are_lines_of_their_own(row: Row, power_laws: Laws, view_of: View) -> None:
    half = [
        row(size=size, parameters=count, device="cpu-half", threads=1, step_time_s=2e-6 * count)
        for size, count in SIZES.items()
    ]
    (axes,) = drawn("speedups", view_of(pd.concat([power_laws(SIZES), pd.DataFrame(half)]))).axes[:1]
    over = {name: line.get_ydata()[-1] for name, line in named(axes).items()}
    assert [round(value) for name, value in over.items() if "half" in name] == [20]
    assert [round(value) for name, value in over.items() if name.endswith("over the CPU")] == [10]


def test_precisions_are_held_against_the_plain_one(power_laws: Laws, view_of: View) -> None:
    tables = [power_laws(SIZES), power_laws(SIZES, gpu_s=5e-4, precision="bf16")]
    figure = drawn("precisions", view_of(pd.concat(tables)))
    gpu = next(axes for axes in figure.axes if "GPU" in axes.get_title(loc="left"))
    lines = [line for line in gpu.get_lines() if len(line.get_xdata()) == 3]
    assert lines[0].get_ydata() == pytest.approx([2, 2, 2])


def test_memory_stacks_the_parts_to_the_peak(row: Row, view_of: View) -> None:
    parts = {"parameter_bytes": 4_000, "gradient_bytes": 4_000, "activation_bytes": 1_500, "other_bytes": 500}
    rows = [
        row(
            size=size,
            device="cuda",
            parameters=size,
            peak_allocated_bytes=10_000 * size,
            device_memory_bytes=10**6,
            optimizer_bytes=0,
            resident_bytes=0,
            **{name: value * size for name, value in parts.items()},
        )
        for size in (2, 4)
    ]
    (axes,) = drawn("memory", view_of(pd.DataFrame(rows))).axes[:1]
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert max(ends) == pytest.approx(40_000)
    assert words_of(axes) == ["20.0 kB", "40.0 kB"]
    assert axes.get_title(loc="left") == "GPU (Brand G1): at most 4.0 % of its 1.00 MB"


@pytest.fixture
def latencies(row: Row) -> pd.DataFrame:
    rows = []
    for trial in (1, 2, 3):
        right = (1e-3 * np.linspace(0.9, 1.1, 300) * 1.01**trial).tolist()
        moved = [2 * value for value in right]
        rows.append(row(device="cuda", trial=trial, latencies_s=right, latencies_transfer_s=moved))
    return pd.DataFrame(rows)


def test_latency_shows_each_way_and_how_far_off_it_is(latencies: pd.DataFrame, view_of: View) -> None:
    published = [{"device": "cuda", "hardware": "Old G", "latency_s": 5e-3, "latency_std_s": 1e-4}]
    (axes,) = drawn("latency", view_of(latencies, published)).axes
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == [
        "right: host clock, synchronised",
        "mistake: transfer in the loop",
        "mistake: one sample",
        "published: Old G",
    ]
    assert words_of(axes)[1].endswith(", × 2.00")
    assert words_of(axes)[3] == "5.00 ms ± 100 µs"
    assert axes.get_xlabel() == "latency of a pass (3 trials, 900 passes)"


def test_throughput_rings_the_best_batch(row: Row, view_of: View) -> None:
    rows = [
        row(device="cuda", batch_size=batch, step_time_s=time) for batch, time in ((1, 1e-3), (8, 2e-3), (64, 32e-3))
    ]
    published = [{"device": "cuda", "hardware": "Old G", "batch_size": 8, "samples_per_s": 1e3}]
    (axes,) = drawn("throughput", view_of(pd.DataFrame(rows), published, batch_sizes=[1, 8, 64])).axes[:1]
    found = named(axes)
    line = next(own for name, own in found.items() if "best: 4,000/s at batch 8" in name)
    assert line.get_ydata() == pytest.approx([1e3, 4e3, 2e3])
    assert "published: Old G" in found
    ring = next(line for line in axes.get_lines() if line.get_markersize() == 11)
    assert list(ring.get_xdata()) == [8]


def test_the_pareto_front_of_memory_and_time() -> None:
    points = [(1.0, 9.0), (2.0, 5.0), (3.0, 6.0), (4.0, 1.0), (5.0, 1.0)]
    assert front(points) == [(1.0, 9.0), (2.0, 5.0), (4.0, 1.0)]


def test_trade_off_names_each_cell(row: Row, view_of: View) -> None:
    rows = [
        row(device="cuda", precision=precision, step_time_s=time, peak_allocated_bytes=size)
        for precision, time, size in (("fp32", 1e-1, 2e6), ("bf16", 2e-1, 1e6))
    ]
    (axes,) = drawn("trade_off", view_of(pd.DataFrame(rows))).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "fp32: 2.00 MB, 1.00 ms",
        "bf16: 1.00 MB, 2.00 ms",
    ]


def test_comparison_puts_published_rows_below_their_cell(row: Row, view_of: View) -> None:
    rows = [row(device="cuda", precision=precision, step_time_s=1e-3) for precision in ("fp32", "bf16")]
    published = [
        {"device": "cuda", "precision": "fp32", "hardware": "Old G", "step_time_s": 5e-3},
        {"device": "cpu", "label": "theirs", "hardware": "Old C", "step_time_s": 1.0},
    ]
    figure = drawn("comparison", view_of(pd.DataFrame(rows), published))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["CPU, not measured", "theirs, Old C", "GPU (Brand G1)", "fp32", "Old G", "bf16"]
    assert [words for words in words_of(figure.axes[0]) if words] == ["1.00 s", "1.00 ms", "5.00 ms", "1.00 ms"]


def test_energy_and_money_have_panels_of_their_own(row: Row, view_of: View) -> None:
    rows = [
        row(size=size, parameters=count, device="cuda", step_time_s=3.6e-3, energy_per_step_j=2.0)
        for size, count in SIZES.items()
    ]
    figure = drawn("energy", view_of(pd.DataFrame(rows), prices={"cuda": 10.0}))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == ["energy", "money"]
    values = [next(iter(named(axes).values())).get_ydata()[0] for axes in panels]
    assert values == pytest.approx([2, 10])  # 3.6 ms x a million steps is an hour
    assert panels[1].get_ylabel() == "USD for\na million steps"


def test_host_share_goes_from_0_to_1(row: Row, view_of: View) -> None:
    rows = [
        row(size=size, parameters=count, device="cuda", host_bound_share=0.25, precision=precision)
        for size, count in SIZES.items()
        for precision in ("fp32", "bf16")
    ]
    (axes,) = drawn("host_share", view_of(pd.DataFrame(rows))).axes[:1]
    assert axes.get_ylim() == (0, 1)
    assert named(axes)["fp32"].get_ydata() == pytest.approx([0.25] * 3)


def test_utilisation_rings_the_best_rate(row: Row, view_of: View) -> None:
    rows = [
        row(size=size, parameters=count, device="cuda", step_time_s=1e-3, flops_per_step=10**9 * size)
        for size, count in SIZES.items()
    ]
    (axes,) = drawn("utilisation", view_of(pd.DataFrame(rows))).axes[:1]
    (name,) = named(axes)
    assert named(axes)[name].get_ydata() == pytest.approx([2, 4, 8])
    assert name.endswith("8.00 TFLOP/s")


@pytest.mark.parametrize("kind", FIGURES)
def test_a_study_whose_cells_all_failed_has_a_figure_that_says_so(kind: str, row: Row, view_of: View) -> None:
    rows = [row(size=size, device="cuda", status="timeout", step_time_s=None) for size in SIZES]
    figure = drawn(kind, view_of(pd.DataFrame(rows), x_axis="size"))
    texts = [text.get_text() for text in (*figure.texts, *(text for axes in figure.axes for text in axes.texts))]
    names = [name for axes in figure.axes for name in named(axes)]
    assert any(texts) or any("timeout" in name for name in names)

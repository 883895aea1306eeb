"""Figures of single cells: comparison, latency, memory, throughput, trade-off, split of a step, and roofline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.collections import PathCollection

from crossover.drawing.style import PUBLISHED_COLOUR
from crossover.drawing.view import StudyView
from crossover.report.figure_files import FIGURES

from .conftest import labelled, marked, row_names, words

View = Callable[..., StudyView]
Row = Callable[..., dict[str, Any]]
MB = 10**6


def test_comparison_has_published_runs_below_the_cells_that_they_match(view_of: View, row: Row) -> None:
    rows = [
        row(precision="fp32", base_rss_bytes=0, peak_rss_bytes=3 * MB),
        row(precision="fp16", status="unsupported", step_time_s=None),
        row(precision="fp32", device="cuda", step_time_s=5e-4, peak_allocated_bytes=2 * MB),
    ]
    published = [
        {"device": "cuda", "hardware": "Old G0", "precision": "fp32", "step_time_s": 2e-3},
        {"device": "cuda", "hardware": "Old G0", "precision": "tf32", "label": "a new candidate", "step_time_s": 1e-3},
    ]
    time, memory = FIGURES["comparison"].draw(view_of(rows, published)).axes

    assert row_names(time) == [
        "CPU (Brand C1)",
        "fp32",
        "fp16",
        "GPU (Brand G1)",
        "fp32",
        "Old G0",
        "a new candidate, Old G0",
    ]
    assert words(time) == ["1.00 ms", "unsupported", "500 µs", "2.00 ms", "1.00 ms"]
    assert marked(time, "D") == [(2e-3, 5), (1e-3, 6)]
    assert {line.get_color() for line in time.lines if line.get_marker() == "D"} == {PUBLISHED_COLOUR}
    assert [text for text in words(memory) if text] == ["3.00 MB", "2.00 MB"]


def test_latency_has_a_row_per_method_with_the_error_of_a_mistake(view_of: View, row: Row) -> None:
    rows = [
        row(device="cuda", trial=trial, latencies_s=[1e-3, 3e-3], latencies_transfer_s=[4e-3 * trial, 4e-3 * trial])
        for trial in (1, 2)
    ]
    published = [
        {"device": "cuda", "hardware": "Old G0", "latency_s": 8e-3, "latency_std_s": 1e-3},
        {"device": "cpu", "hardware": "Old C0", "latency_s": 9e-3},
    ]
    (axes,) = FIGURES["latency"].draw(view_of(rows, published)).axes

    names = ["right: host clock, synchronised", "mistake: transfer in the loop", "mistake: one sample"]
    assert row_names(axes) == [*names, "published: Old G0"]
    # The trials' ratios are 2 and 4, with a geometric mean of 2.83; that is not significant.
    expected = ["2.00 ms ± 1.15 ms", "6.00 ms ± 2.31 ms, × 2.83", "1.00 ms to 3.00 ms", "8.00 ms ± 1.00 ms"]
    assert words(axes) == expected
    assert [text.get_color() == PUBLISHED_COLOUR for text in axes.texts] == [False, True, False, True]
    assert axes.get_xlabel() == "latency of a pass (2 trials, 4 passes)"


def test_memory_at_one_size_is_a_bar_per_cell_with_its_parts(view_of: View, row: Row) -> None:
    parts = {"parameter_bytes": 4 * MB, "gradient_bytes": 3 * MB, "optimizer_bytes": 0, "activation_bytes": 2 * MB}
    measured = {**parts, "resident_bytes": 0, "other_bytes": MB, "peak_allocated_bytes": 10 * MB}
    rows = [
        row(device="cuda", precision="fp32", device_memory_bytes=80 * MB, **measured),
        row(device="cuda", precision="tf32", peak_allocated_bytes=5 * MB),
        row(device="cuda", precision="fp64", status="oom", step_time_s=None),
    ]
    (axes,) = FIGURES["memory"].draw(view_of(rows)).axes

    assert row_names(axes) == ["fp32", "tf32", "fp64"]
    assert words(axes) == ["10.0 MB", "5.00 MB", "oom"]
    bars = {part.get_label(): [(bar.get_x(), bar.get_width()) for bar in part] for part in axes.containers}
    assert {name: bars_of_part[0] for name, bars_of_part in bars.items()} == {
        "parameters": (0, 4 * MB),
        "gradients": (4 * MB, 3 * MB),
        "activations": (7 * MB, 2 * MB),
        "workspace and rest": (9 * MB, MB),
        "parts not known": (0, 0),
    }
    assert bars["parts not known"][1] == (0, 5 * MB)
    assert axes.get_title("left").startswith("GPU (Brand G1) with 80.0 MB")


def test_memory_over_size_is_a_line_with_the_capacity_and_a_bar_for_the_largest_size(view_of: View, row: Row) -> None:
    peaks = {("fp32", 2): 10, ("fp32", 4): 60, ("fp16", 2): 5, ("fp16", 4): 30, ("fp32", 8): None, ("fp16", 8): 70}
    rows = [
        row(device="cuda", precision=precision, size=size, device_memory_bytes=80 * MB)
        | ({"peak_allocated_bytes": peak * MB} if peak else {"status": "oom", "step_time_s": None})
        for (precision, size), peak in peaks.items()
    ]
    lines, bars = FIGURES["memory"].draw(view_of(rows)).axes

    shown = labelled(lines)
    assert shown["fp32, oom at 8"] == {2: 10 * MB, 4: 60 * MB}
    assert shown["fp16"] == {2: 5 * MB, 4: 30 * MB, 8: 70 * MB}
    assert set(shown["capacity: 80.0 MB"].values()) == {80 * MB}
    assert lines.get_ylim()[1] > 80 * MB
    assert [x for x, _ in marked(lines, "x")] == [8]
    assert dict(zip(row_names(bars), words(bars), strict=True)) == {
        "4 linear layers, fp32": "60.0 MB",
        "8 linear layers, fp16": "70.0 MB",
    }


def test_throughput_rings_the_maximum_and_shows_the_largest_batch(view_of: View, row: Row) -> None:
    rows = [
        row(device="cuda", batch_size=batch, step_time_s=seconds)
        for batch, seconds in {1: 1e-3, 10: 2e-3, 100: 5e-2}.items()
    ]
    rows.append(row(device="cuda", batch_size=1000, status="oom", step_time_s=None))
    search = {axis: rows[0][axis] for axis in ("study", "workload", "variant", "protocol", "precision", "execution")}
    search |= {axis: rows[0][axis] for axis in ("size", "machine", "device")}
    search |= {"status": "ok", "largest_batch": 640, "throughput_samples_per_s": 4000.0}
    published = [{"device": "cuda", "hardware": "Old G0", "label": "torch 1", "batch_size": 10, "samples_per_s": 900.0}]
    (axes,) = FIGURES["throughput"].draw(view_of(rows, published, [search])).axes

    shown = labelled(axes)
    (ours,) = (name for name in shown if "best" in name)
    assert ours.split("\n")[1:] == ["best: 5,000/s at batch 10", "largest batch: 640"]
    assert "oom at 1,000" in ours
    assert shown[ours] == pytest.approx({1: 1000, 10: 5000, 100: 2000})
    assert shown["published: Old G0, torch 1"] == {10: 900}
    assert marked(axes, "s") == [(640, 4000)]
    assert [x for x, _ in marked(axes, "x")] == [1000]


def test_trade_off_draws_the_pareto_front(view_of: View, row: Row) -> None:
    cells = {"plain": (4, 1.0), "slow": (3, 5.0), "small": (1, 3.0), "worst": (5, 6.0)}
    rows = [
        row(device="cuda", variant=variant, batch_size=1, step_time_s=seconds, peak_allocated_bytes=peak * MB)
        for variant, (peak, seconds) in cells.items()
    ]
    published = [{"device": "cuda", "hardware": "Old G0", "label": "theirs", "samples_per_s": 0.5}]
    published[0]["peak_allocated_bytes"] = 2 * MB
    (axes,) = FIGURES["trade_off"].draw(view_of(rows, published)).axes

    (dots,) = (collection for collection in axes.collections if isinstance(collection, PathCollection))
    assert dict(dots.get_offsets().tolist()) == pytest.approx({peak * MB: s for peak, s in cells.values()})
    (front,) = (line for line in axes.lines if line.get_drawstyle() == "steps-post")
    assert list(front.get_xdata()) == [MB, 4 * MB]
    assert marked(axes, "D") == [(2 * MB, 2)]
    assert words(axes) == ["1"]
    assert "1: published, theirs" in axes.get_legend_handles_labels()[1]
    assert axes.get_xlabel().endswith("published: measured on Old G0")


SPLIT_STEP = {"split_step_s": 1e-3, "loading_s": 1e-6, "held_s": 1e-3, "working_s": 1e-3, "products_s": 1e-4}


def test_a_time_split_has_the_parts_of_a_step_and_the_gain_by_the_remedy(view_of: View, row: Row) -> None:
    """Three quarters of a GPU step are launch overhead; the rest is unexplained."""
    split = SPLIT_STEP | {"replayed_s": 2.5e-4}
    view = view_of([row(device="cuda", size=2, trial=trial, **split) for trial in (1, 2)])
    (axes,) = FIGURES["time_split"].draw(view).axes
    bars = {container.get_label(): [bar.get_width() for bar in container] for container in axes.containers}
    assert bars == {
        "launching kernels": [pytest.approx(0.75)],
        "unexplained work of the device": [pytest.approx(0.25)],
    }
    assert words(axes) == ["one CUDA graph: 4.00×"]
    assert row_names(axes) == ["2 linear layers: 1.00 ms"]
    assert FIGURES["time_split"].applies(view.tables)


def test_a_roofline_has_cells_and_the_roofs_of_their_device(view_of: View, row: Row) -> None:
    work = {"products_bytes_by_working_set": [0.0, 1e6], "others_bytes_by_working_set": [0.0, 1e6]}
    rows = [row(device="cuda", size=size, flops_per_step=size * 10**6, **work) for size in (2, 4)]
    roofs = [
        {"device": "cuda", "roof": "matmul", "precision": "fp32", "value": 5e13},
        {"device": "cuda", "roof": "memory", "working_set_bytes": 2**20, "value": 6e12},
        {"device": "cuda", "roof": "memory", "working_set_bytes": 2**30, "value": 4e12},
    ]
    view = view_of(rows, roofs=[{"machine": "here", **roof} for roof in roofs])
    (axes,) = FIGURES["roofline"].draw(view).axes
    assert marked(axes, "o") == [(1.0, pytest.approx(2e9)), (2.0, pytest.approx(4e9))]
    assert words(axes) == ["2 linear layers", "4 linear layers"]
    assert set(labelled(axes)) == {
        "memory, 1.05 MB: 6,000 GB/s",
        "memory, 1.07 GB: 4,000 GB/s",
        "fp32 products: 50 TFLOP/s",
    }
    assert FIGURES["roofline"].applies(view.tables)
    assert not FIGURES["roofline"].applies(view_of(rows).tables)

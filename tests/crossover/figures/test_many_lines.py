"""Studies with many lines: small multiples for each execution, a line for each precision and device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crossover.figures.figures import plot_speedups, plot_times
from crossover.figures.many_lines import plot_utilisation
from crossover.figures.status_marks import MARK
from crossover.figures.views import StudyView
from matplotlib.axes import Axes

from crossover.figures.style import DEVICE_COLOURS

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]
PRECISIONS, EXECUTIONS = ("fp32", "tf32", "amp-bf16"), ("eager", "compile")
LOST: dict[str, Any] = {"status": "unsupported", "step_time_s": None, "flags": None}


@pytest.fixture
def view(row: Row, view_of: Views) -> StudyView:
    """3 precisions x 2 executions x 2 devices x 2 sizes: the GPU takes a tenth of the CPU's 1 s; no tf32 on the CPU."""
    rows = []
    for precision in sorted(PRECISIONS):
        for execution in EXECUTIONS:
            for size in (256, 1024):
                axes: dict[str, Any] = {"precision": precision, "execution": execution, "size": size}
                axes |= {"size_name": "width", "flops_per_step": 10**12}
                rows.append(row(device="cuda", step_time_s=0.1, **axes))
                rows.append(row(device="cpu", **axes, **(LOST if precision == "tf32" else {"step_time_s": 1.0})))
    return view_of(rows, precisions=PRECISIONS, executions=EXECUTIONS)


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def test_times_have_a_panel_for_each_execution(view: StudyView) -> None:
    figure = plot_times(view)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["eager", "compile"]
    for axes in figure.axes:
        assert sorted(texts(axes)) == [
            "CPU, amp-bf16",
            "CPU, fp32",
            "CPU, tf32: unsupported",
            "GPU, amp-bf16",
            "GPU, fp32",
            "GPU, tf32",
        ]
        assert axes.get_ylabel() == "time per step"
    assert figure.axes[-1].get_xlabel() == "width\nCPU: Brand C1; GPU: Brand G1"


def test_colours_tell_precisions_and_dashes_devices(view: StudyView) -> None:
    lines = plot_times(view).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines) == 5
    assert len({line.get_color() for line in lines}) == 3


def test_speedups_are_over_the_cpu_in_the_same_precision(view: StudyView) -> None:
    figure = plot_speedups(view)
    for axes in figure.axes:
        equal, *lines = axes.lines
        assert set(np.asarray(equal.get_ydata())) == {1}
        assert [np.asarray(line.get_ydata()).tolist() for line in lines] == [pytest.approx([10, 10])] * 2
        assert sorted(texts(axes)) == ["GPU, amp-bf16", "GPU, fp32", "GPU, tf32: no time on both devices"]


def test_utilisation_gives_the_best_rate_and_its_share(row: Row, view_of: Views) -> None:
    """1 TFLOP in 0.1 s: 10 TFLOP/s, a quarter of the 40 that the product reached."""
    rows = [
        row(device="cuda", size=size, step_time_s=time, flops_per_step=10**12)
        for size, time in ((256, 0.4), (1024, 0.1))
    ]
    product = row(study="other", workload="matmul", device="cuda", step_time_s=1.0, flops_per_step=40 * 10**12)
    (axes,) = plot_utilisation(view_of([*rows, product])).axes
    assert texts(axes) == ["GPU\n10.0 TFLOP/s, 25 % of matmul"]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == pytest.approx([2.5, 10])
    (axes,) = plot_utilisation(view_of(rows)).axes
    assert texts(axes) == ["GPU\n10.0 TFLOP/s"]


def test_refined_sizes_are_hollow_and_have_a_tick_where_there_is_room(view: StudyView) -> None:
    marked = replace(view, cells=view.cells.assign(refined=view.cells["size"] == 1024))
    for axes in plot_times(marked).axes:
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert len(hollow) == 5
        assert {float(x) for line in hollow for x in np.asarray(line.get_xdata())} == {1024.0}
        assert [label.get_text() for label in axes.get_xticklabels()] == ["256", "1,024"]


def test_a_panel_without_any_point_is_left_out(row: Row, view_of: Views) -> None:
    rows = [
        row(device=device, execution=execution, size=size, **({} if execution == "eager" else LOST))
        for device in ("cpu", "cuda")
        for execution in ("eager", "compile", "cuda-graph")
        for size in (2, 4)
    ]
    figure = plot_times(view_of(rows, executions=["eager", "compile", "cuda-graph"]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["eager"]


def test_a_size_that_failed_is_named_on_its_line(row: Row, view_of: Views) -> None:
    rows = [row(precision=name, size=size) for name in PRECISIONS for size in (2, 4000)]
    rows[-1] |= LOST | {"status": "oom"}
    (axes,) = plot_times(view_of(rows, precisions=PRECISIONS)).axes
    assert "CPU, amp-bf16, oom at 4,000" in texts(axes)
    assert texts(axes)[-2:] == [MARK, "oom"]


def test_speedups_mark_what_failed_on_either_device(row: Row, view_of: Views) -> None:
    rows = [
        row(precision=name, size=size, device=device)
        for name in PRECISIONS
        for device in ("cpu", "cuda")
        for size in (2, 4, 8)
    ]
    rows[0] |= LOST | {"status": "timeout"}
    rows[5] |= LOST | {"status": "oom"}
    (axes,) = plot_speedups(view_of(rows, precisions=PRECISIONS)).axes
    assert texts(axes)[-4:] == [MARK, "GPU oom", MARK, "CPU timeout"]


def test_a_line_without_any_time_is_named_and_has_no_marks(view: StudyView) -> None:
    eager, _ = plot_times(view).axes
    assert "CPU, tf32: unsupported" in texts(eager)
    assert MARK not in texts(eager)


def test_without_a_count_of_operations_the_figure_says_so(row: Row, view_of: Views) -> None:
    (axes,) = plot_utilisation(view_of([row(size=size) for size in (2, 4)])).axes
    assert texts(axes) == ["CPU: operations not counted"]


def test_of_one_precision_the_lines_have_the_devices_colours(row: Row, view_of: Views) -> None:
    rows = [
        row(device=device, batch_size=batch, size=size)
        for device in ("cpu", "cuda")
        for batch in (8, 64, 512)
        for size in (2, 4)
    ]
    for axes in plot_times(view_of(rows)).axes:
        assert [line.get_color() for line in axes.lines] == [DEVICE_COLOURS["cpu"], DEVICE_COLOURS["cuda"]]


@pytest.fixture
def fewer(row: Row, view_of: Views) -> StudyView:
    """One size apart: 8 s on 1 core, 2 s on 8, 1 s on 16, 0.5 s on the GPU."""
    times = {"cuda": (16, 0.5), "cpu-1": (1, 8.0), "cpu-half": (8, 2.0), "cpu": (16, 1.0)}
    return view_of(
        [
            row(device=device, threads=threads, step_time_s=time, size=size, size_name="width")
            | {"device_name": "Brand G1" if device == "cuda" else "Brand C1"}
            for device, (threads, time) in times.items()
            for size in (10, 100)
        ]
    )


def test_times_name_the_cores_of_each_cpu_line(fewer: StudyView) -> None:
    (axes,) = plot_times(fewer).axes
    assert texts(axes) == ["CPU on 16 cores", "CPU on 8 cores (half)", "CPU on 1 core", "GPU"]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--", ":", "-"]
    assert [np.asarray(line.get_ydata())[0] for line in axes.lines] == pytest.approx([1, 2, 8, 0.5])
    full, half, one, gpu = (line.get_color() for line in axes.lines)
    assert (full, gpu) == (DEVICE_COLOURS["cpu"], DEVICE_COLOURS["cuda"])
    assert half == one != full
    assert axes.get_xlabel() == "width\nCPU: Brand C1; GPU: Brand G1"


def test_speedups_have_a_line_over_each_number_of_cores(fewer: StudyView) -> None:
    (axes,) = plot_speedups(fewer).axes
    assert texts(axes) == ["GPU over 16 cores", "GPU over 8 cores (half)", "GPU over 1 core"]
    assert [np.asarray(line.get_ydata())[0] for line in axes.lines[1:]] == pytest.approx([2, 4, 16])
    assert [line.get_linestyle() for line in axes.lines[1:]] == ["-", "--", ":"]


def test_other_figures_show_the_cpu_on_all_cores_alone(fewer: StudyView) -> None:
    assert fewer.has_fewer_cores
    assert fewer.on_all_cores().cells["device"].unique().tolist() == ["cpu", "cuda"]
    assert [text.split("\n")[0] for text in texts(plot_utilisation(fewer).axes[0])] == [
        "CPU: operations not counted",
        "GPU: operations not counted",
    ]


def test_two_machines_share_a_panel_and_each_line_names_its_own(row: Row, view_of: Views) -> None:
    """The CPU of `a` takes 1 s, that of `b` 4 s and its GPU 2 s: twice as fast as the CPU beside it."""
    sides = (("a", "cpu", 1.0), ("b", "cpu", 4.0), ("b", "cuda", 2.0))
    rows = [
        row(machine=machine, device=device, size=size, step_time_s=time)
        for size in (2, 4)
        for machine, device, time in sides
    ]
    view = view_of(rows)
    (times,) = plot_times(view).axes
    assert sorted(texts(times)) == ["CPU, a", "CPU, b", "GPU, b"]
    assert times.get_xlabel() == "linear layers\na, CPU: Brand C1; b, CPU: Brand C1; b, GPU: Brand G1"
    (speedups,) = plot_speedups(view).axes
    assert texts(speedups) == ["GPU, b"]
    drawn = [line for line in speedups.lines if len(line.get_xdata()) == 2 and list(line.get_ydata()) == [2.0, 2.0]]
    assert drawn

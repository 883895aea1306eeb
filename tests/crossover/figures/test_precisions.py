"""Speed-ups of precisions and executions over the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from crossover.figures.precisions import NO_PAIR, plot_precisions
from crossover.figures.views import StudyView
from matplotlib.axes import Axes

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


def lines(axes: Axes) -> dict[str, list[list[float]]]:
    """By the words beside them, the points of the lines."""
    words = [text.get_text() for text in axes.texts if text.get_text()]
    drawn = [line for line in axes.lines if line.get_marker() == "o"]
    points = [[list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))] for line in drawn]
    return dict(zip(words, points, strict=False))


def test_each_is_over_the_plain_one_on_the_same_device(row: Row, view_of: Views) -> None:
    """fp32 takes 8 ms and bf16 2 ms on the GPU at both sizes; on the CPU 1 ms and 4 ms."""
    times = {("cuda", "fp32"): 8e-3, ("cuda", "bf16"): 2e-3, ("cpu", "fp32"): 1e-3, ("cpu", "bf16"): 4e-3}
    rows = [
        row(device=device, precision=precision, size=size, step_time_s=time)
        for (device, precision), time in times.items()
        for size in (2, 4)
    ]
    cpu, cuda = plot_precisions(view_of(rows)).axes
    assert [axes.get_title(loc="left") for axes in (cpu, cuda)] == ["CPU (Brand C1)", "GPU (Brand G1)"]
    assert lines(cpu) == {"bf16": [[2, 4], pytest.approx([0.25, 0.25])]}
    assert lines(cuda) == {"bf16": [[2, 4], pytest.approx([4, 4])]}
    assert cuda.get_ylabel() == "speed-up over fp32"
    assert any(list(map(float, line.get_ydata())) == [1, 1] for line in cuda.lines)


def test_the_interval_is_that_of_the_ratio(row: Row, view_of: Views) -> None:
    """Trials 0.9 and 1.1 around the mean in logarithms on both sides: half-width t(2) sqrt(2 * 0.1^2) = 0.6085."""
    rows = [
        row(precision=precision, size=size, trial=trial, step_time_s=time * np.exp(sign * 0.1))
        for precision, time in (("fp32", 4e-3), ("bf16", 1e-3))
        for size in (2, 4)
        for trial, sign in ((1, -1), (2, 1))
    ]
    (axes,) = plot_precisions(view_of(rows)).axes
    (band,) = axes.collections
    ends = sorted({float(y) for y in band.get_paths()[0].vertices[:, 1]})  # type: ignore[index]
    assert np.log(np.array([ends[0], ends[-1]]) / 4) == pytest.approx([-0.6085, 0.6085], abs=1e-4)


def test_executions_count_as_precisions_do(row: Row, view_of: Views) -> None:
    rows = [
        row(execution=execution, size=size, step_time_s=time)
        for execution, time in (("eager", 4e-3), ("compile", 2e-3))
        for size in (2, 4)
    ]
    (axes,) = plot_precisions(view_of(rows)).axes
    assert axes.get_ylabel() == "speed-up over eager"
    assert lines(axes) == {"compile": [[2, 4], pytest.approx([2, 2])]}


def test_without_the_plain_one_there_is_nothing_to_compare(row: Row, view_of: Views) -> None:
    for rows in ([row()], [row(precision="bf16"), row(precision="tf32")]):
        figure = plot_precisions(view_of(rows))
        assert [text.get_text() for text in figure.texts] == ["A title", NO_PAIR]


def test_a_line_whose_plain_one_failed_says_so(row: Row, view_of: Views) -> None:
    lost: dict[str, Any] = {"status": "oom", "step_time_s": None, "flags": None}
    rows = [row(size=size, precision="bf16") for size in (2, 4)] + [row(size=size) | lost for size in (2, 4)]
    (axes,) = plot_precisions(view_of(rows)).axes
    assert [text.get_text() for text in axes.texts] == ["bf16: no time in fp32"]

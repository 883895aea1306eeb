"""Figures over batch sizes and over cores, and the map of the speed-up over two axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crossover.drawing.view import StudyView
from crossover.report.figure_files import FIGURES

from .conftest import labelled, marked

View = Callable[..., StudyView]
Row = Callable[..., dict[str, Any]]
SPREAD = (0.98, 1.0, 1.02)
SIZES, BATCHES = [2, 3, 4], [1, 4, 16, 64]


@pytest.fixture
def grid(row: Row) -> list[dict[str, Any]]:
    """The CPU takes 10 us per sample and size, the GPU 0.4 ms: they cross where size x batch is 40."""
    return [
        row(size=size, batch_size=batch, device=device, trial=trial, step_time_s=seconds * spread)
        for size in SIZES
        for batch in BATCHES
        for device, seconds in (("cpu", 1e-5 * size * batch), ("cuda", 4e-4))
        for trial, spread in enumerate(SPREAD, 1)
    ]


@pytest.fixture
def over_cores(row: Row) -> list[dict[str, Any]]:
    threads = {"cpu": 16, "cpu-1": 1, "cpu-4": 4, "cuda": 16}
    times = {"cpu": 4e-4, "cpu-1": 4e-3, "cpu-4": 1e-3, "cuda": 1e-3}
    return [
        row(
            device=device,
            device_name="Brand G1" if device == "cuda" else "Brand C1",
            threads=threads[device],
            trial=trial,
            step_time_s=times[device] * spread,
        )
        for device in times
        for trial, spread in enumerate(SPREAD, 1)
    ]


def test_times_over_batch_sizes_have_a_panel_per_size(view_of: View, grid: Any) -> None:
    figure = FIGURES["times"].draw(view_of(grid, x_axis="batch_size", sizes=SIZES))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"{size} linear layers" for size in SIZES]
    cpu = labelled(figure.axes[0])["CPU (Brand C1)"]
    assert cpu == pytest.approx({batch: 2e-5 * batch for batch in BATCHES}, rel=1e-3)
    assert figure.axes[-1].get_xlabel() == "samples per batch"


def test_over_cores_the_times_of_the_gpu_are_constant(view_of: View, over_cores: Any) -> None:
    view = view_of(over_cores, x_axis="cpu_threads", cpu_threads=[1, 4])
    (axes,) = FIGURES["times"].draw(view).axes
    shown = labelled(axes)
    assert shown["CPU (Brand C1)"] == pytest.approx({1: 4e-3, 4: 1e-3, 16: 4e-4}, rel=1e-3)
    assert shown["GPU (Brand G1)"] == pytest.approx({1: 1e-3, 4: 1e-3, 16: 1e-3}, rel=1e-3)
    assert axes.get_xlabel() == "CPU cores"
    (axes,) = FIGURES["speedups"].draw(view).axes
    assert {1: 4.0, 4: 1.0, 16: 0.4} in [
        {int(x): round(y, 3) for x, y in points.items()} for points in labelled(axes).values()
    ]
    assert all([*points] == sorted(points) for points in labelled(axes).values())


def test_a_map_has_each_speedup_and_the_crossovers(view_of: View, grid: Any) -> None:
    view = view_of(grid, x_axis="size", sizes=SIZES)
    assert FIGURES["map"].applies(view.tables)
    (axes,) = FIGURES["map"].draw(view).axes
    words = {text.get_text() for text in axes.texts}
    assert len(axes.texts) == len(SIZES) * len(BATCHES)
    assert {"0.050x", "6.4x", "1.6x"} <= words
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("linear layers", "samples per batch")
    # Along a column (fixed size) they cross at batch 40 / size; along a row, only batch 16 crosses at these sizes.
    columns, rows = marked(axes, "s"), marked(axes, "o")
    assert [size for size, _ in columns] == SIZES
    assert [size * batch for size, batch in columns] == pytest.approx([40] * 3, rel=0.1)
    assert rows == [(pytest.approx(2.5, rel=0.05), 16.0)]

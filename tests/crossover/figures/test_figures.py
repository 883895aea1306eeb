"""Figures are asked what they show: lines, marks, labels; how they look is for eyes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crossover.figures.comparison import plot_comparison
from crossover.figures.energy import plot_energy
from crossover.figures.figure_files import read_view, save_study_figure, write_takeaway
from crossover.figures.figures import (
    plot_speedups,
    plot_times,
)
from crossover.figures.host_share import plot_host_share
from crossover.figures.latency import plot_latency
from crossover.figures.many_lines import plot_utilisation
from crossover.figures.memory import plot_memory
from crossover.figures.precisions import plot_precisions
from crossover.figures.status_marks import MARK
from crossover.figures.throughput import plot_throughput
from crossover.figures.trade_off import plot_trade_off
from crossover.figures.views import StudyView, study_view
from crossover.statistics.comparisons import compare_lines
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS
from crossover.statistics.summary import summarise
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from crossover.figures.style import DEVICE_COLOURS

PowerLaws = Callable[..., pd.DataFrame]
FORMATS = ("svg", "pdf", "png")
SPEC: dict[str, Any] = {
    "name": "disc_depth",
    "title": "A title",
    "x_axis": "size",
    "steps_per_run": 1000,
    "published": {"statement": "", "source": "", "crossover": [300, 300], "results": None},
}


PLOTS = [
    plot_times,
    plot_speedups,
    plot_precisions,
    plot_comparison,
    plot_latency,
    plot_throughput,
    plot_utilisation,
    plot_host_share,
    plot_memory,
    plot_trade_off,
    plot_energy,
]


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    plt.close("all")


def view(rows: pd.DataFrame, **changes: Any) -> StudyView:
    spec = {**SPEC, **changes}
    crossovers = compare_lines(rows, {"disc_depth": spec["x_axis"]})
    return study_view(rows, summarise(rows), crossovers, spec, None)


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def line_of(axes: Axes, device: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    (line,) = (
        line for line in axes.lines if line.get_color() == DEVICE_COLOURS[device] and line.get_linestyle() == "-"
    )
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def only_axes(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def test_times_show_every_cell_and_every_trial(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000}, trials=3)
    axes = only_axes(plot_times(view(rows)))
    x, y = line_of(axes, "cpu")
    assert x == pytest.approx([2, 4])
    assert y == pytest.approx([0.1, 100])  # 1000 steps of 0.1 ms and of 0.1 s
    assert sum(len(dots.get_offsets()) for dots in axes.collections if dots.get_offsets().shape[0] == 6) == 12
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "1,000 steps in s" in axes.get_ylabel()
    assert axes.get_xlabel() == "linear layers"


def test_times_are_labelled_on_the_lines(power_laws: PowerLaws) -> None:
    labels = texts(only_axes(plot_times(view(power_laws({2: 100, 4: 100_000})))))
    assert {"CPU\nBrand C1", "GPU\nBrand G1", "crossover: 2.52", "published: 300"} <= set(labels)


def test_the_interval_is_a_whisker_where_the_lines_cross(power_laws: PowerLaws) -> None:
    """They cross at 1000 parameters and 1 ms a step, which is 1 s for the run of 1000 steps."""
    shown = view(power_laws({2: 100, 4: 100_000}), x_axis="parameters")
    (axes, *_) = plot_times(shown).axes
    assert not axes.containers
    found = shown.crossovers.assign(crossover_low=800.0, crossover_high=1300.0)
    (axes, *_) = plot_times(replace(shown, crossovers=found)).axes
    assert "crossover: 1,000 (800 to 1,300)" in texts(axes)
    (whisker,) = axes.containers
    ((start, end),) = whisker.lines[2][0].get_segments()  # type: ignore[index]
    assert start == pytest.approx([800, 1])
    assert end == pytest.approx([1300, 1])


@pytest.mark.parametrize("plot", [plot_times, plot_speedups])
def test_the_widest_intervals_run_out_of_the_figure(power_laws: PowerLaws, plot: Callable[..., Figure]) -> None:
    """Two trials that differ by a factor of 10 have an interval of ten decades and more."""
    rows = power_laws({2: 100, 4: 100_000}, trials=2)
    odd = (rows["size"] == 2) & (rows["device"] == "cpu") & (rows["trial"] == 2)
    shown = view(rows.assign(step_time_s=rows["step_time_s"].where(~odd, rows["step_time_s"] * 10)))
    assert shown.cells["step_time_high_s"].max() > 1e3 * shown.cells["step_time_s"].max()
    low, high = only_axes(plot(shown)).get_ylim()
    assert high / low < 1e6


def test_no_crossover_no_mark(power_laws: PowerLaws) -> None:
    labels = texts(only_axes(plot_times(view(power_laws({2: 100, 4: 1000}, gpu_s=10)))))
    assert not [label for label in labels if label.startswith("crossover")]


def test_without_a_run_the_time_is_that_of_a_step(power_laws: PowerLaws) -> None:
    axes = only_axes(plot_times(view(power_laws({2: 100, 4: 100_000}), steps_per_run=None)))
    assert axes.get_ylabel() == "time per step"
    assert line_of(axes, "cpu")[1] == pytest.approx([1e-4, 0.1])


def test_a_cell_without_a_time_is_marked_by_its_status(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    lost = (rows["size"] == 4) & (rows["device"] == "cuda")
    rows.loc[lost, "status"] = "oom"
    rows.loc[lost, "step_time_s"] = np.nan
    axes = only_axes(plot_times(view(rows)))
    assert {MARK, "oom"} <= set(texts(axes))
    assert {MARK, "GPU oom"} <= set(texts(only_axes(plot_speedups(view(rows)))))
    assert line_of(axes, "cuda")[0] == pytest.approx([2])


@pytest.mark.parametrize("plot", [plot_times, plot_speedups])
def test_a_study_without_any_time_is_drawn_empty(power_laws: PowerLaws, plot: Callable[[StudyView], Figure]) -> None:
    rows = power_laws({2: 100, 4: 100_000})
    rows["status"] = "unsupported"
    rows["step_time_s"] = np.nan
    figure = plot(view(rows))
    figure.canvas.draw()
    axes = only_axes(figure)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4"]
    assert not [line for line in axes.lines if line.get_color() in DEVICE_COLOURS.values()]


def test_over_parameters_the_sizes_stand_on_top(power_laws: PowerLaws) -> None:
    figure = plot_times(view(power_laws({2: 100, 4: 100_000}), x_axis="parameters"))
    axes = figure.axes[0]
    assert line_of(axes, "cpu")[0] == pytest.approx([100, 100_000])
    assert axes.get_xlabel() == "parameters"
    (top,) = axes.child_axes
    assert [label.get_text() for label in top.get_xticklabels()] == ["2", "4"]


def test_crowded_sizes_are_not_all_labelled(power_laws: PowerLaws) -> None:
    axes = only_axes(plot_times(view(power_laws({size: 100 * size for size in (1, 2, 100, 101, 102, 200)}))))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "100", "200"]


def test_sizes_too_close_for_their_words_are_not_labelled(power_laws: PowerLaws) -> None:
    """Between 5 and 2000, 1000 and 1400 stand less apart than four digits are wide."""
    axes = only_axes(plot_times(view(power_laws({size: size for size in (5, 100, 1000, 1400, 2000)}))))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "100", "1,000", "2,000"]


def refined(rows: pd.DataFrame) -> StudyView:
    """The first grid has all sizes but 4."""
    cells = summarise(rows, {"disc_depth": set(rows["size"]) - {4}})
    return study_view(rows, cells, compare_lines(rows, {"disc_depth": "size"}), SPEC, None)


def hollow_points(axes: Axes) -> list[tuple[float, float]]:
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    return [point for line in hollow for point in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_refined_sizes_are_hollow(power_laws: PowerLaws) -> None:
    """Of 100, 1000 and 10000 parameters, 4 layers have 1000: the CPU takes 1 ms, as does the GPU; 1000 steps, 1 s."""
    shown = refined(power_laws({2: 100, 4: 1000, 8: 10000}))
    (axes,) = plot_times(shown).axes
    assert hollow_points(axes) == [(4, pytest.approx(1.0)), (4, pytest.approx(1.0))]
    filled = [dots for dots in axes.collections if isinstance(dots, PathCollection)]
    assert [np.asarray(dots.get_offsets())[:, 0].tolist() for dots in filled] == [[2, 8], [2, 8]]
    (axes,) = plot_speedups(shown).axes
    assert hollow_points(axes) == [(4, pytest.approx(1.0))]


def test_a_refined_size_has_no_label_beside_one_of_the_first_grid(power_laws: PowerLaws) -> None:
    """On an axis of four decades 4 and 5 would stand upon one another."""
    (axes, *_) = plot_times(refined(power_laws({1: 10, 4: 1000, 5: 1100, 10**4: 10**7}))).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5", "10,000"]


def test_published_runs_stand_beside_ours_in_their_protocol_only(power_laws: PowerLaws, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    lines = ["2,cpu,,10000", "4,cpu,,200000", "2,cuda,P100,50000", "4,cuda,P100,50000"]
    text = "".join(f"as_published,{line}\n" for line in lines)
    table.write_text(f"# source\nprotocol,size,device,hardware,run_time_ms\n{text}")
    rows = pd.concat([power_laws({2: 100, 4: 1000}, protocol=name) for name in ("as_published", "resident")])
    published = {"crossover": None, "results": table.name}
    crossovers = compare_lines(rows, {"disc_depth": "size"})
    shown = study_view(rows, summarise(rows), crossovers, {**SPEC, "published": published}, table)
    left, right = plot_times(shown).axes
    assert {"published CPU", "published GPU (P100)"} <= set(texts(left))
    assert not [text for text in texts(right) if text.startswith("published")]
    dotted = [np.asarray(line.get_ydata()).tolist() for line in left.lines if line.get_linestyle() == ":"]
    assert dotted == [[10, 200], [50, 50]]


def test_speedups_divide_the_times(power_laws: PowerLaws) -> None:
    axes = only_axes(plot_speedups(view(power_laws({2: 100, 4: 100_000}, trials=3))))
    x, y = line_of(axes, "cuda")
    assert x == pytest.approx([2, 4])
    assert y == pytest.approx([0.1, 100])
    assert "equal" in texts(axes)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("plot", PLOTS)
def test_the_same_data_give_the_same_files(
    power_laws: PowerLaws, tmp_path: Path, plot: Callable[[StudyView], Figure]
) -> None:
    measured = {"latencies_s": [0.9, 1.0, 1.2], "flops_per_step": 10**9, "peak_rss_bytes": 2, "base_rss_bytes": 1}
    measured |= {"host_bound_share": 0.5, "energy_per_step_j": 0.1}
    rows = power_laws({2: 100, 4: 100_000}, trials=2, **measured)
    tables = {"measurements": rows, "cells": summarise(rows), "crossovers": compare_lines(rows, {"disc_depth": "size"})}
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    shown = read_view(SPEC, *(str(tmp_path / f"{name}.parquet") for name in tables), "")
    formats = FORMATS if plot is plot_times else ["svg"]  # which has all that one plot may do unlike another
    for attempt in ("first", "again"):
        save_study_figure(plot, shown, [str(tmp_path / f"{attempt}.{suffix}") for suffix in formats])
    for suffix in formats:
        assert (tmp_path / f"first.{suffix}").read_bytes() == (tmp_path / f"again.{suffix}").read_bytes()
        assert (tmp_path / f"first.{suffix}").stat().st_size > 1000


def test_words_stay_words_and_a_pdf_brings_its_fonts(power_laws: PowerLaws, tmp_path: Path) -> None:
    shown = view(power_laws({2: 100, 4: 100_000}))
    save_study_figure(plot_times, shown, [str(tmp_path / f"figure.{suffix}") for suffix in FORMATS])
    svg = (tmp_path / "figure.svg").read_text()
    for words in ("A title", "Brand G1", "crossover: 2.52", "linear layers"):
        assert f">{words}</text>" in svg
    assert "fill: #ffffff" in svg[: svg.index("</g>")]  # its ground, whatever page it stands on
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/CreationDate" not in pdf


def test_what_a_figure_shows_stands_in_a_file(power_laws: PowerLaws, tmp_path: Path) -> None:
    write_takeaway("speedups", view(power_laws({2: 100, 4: 100_000})), str(tmp_path / "speedups.txt"))
    assert (tmp_path / "speedups.txt").read_text().startswith("Largest measured speed-up over the CPU: 100 times")


def test_the_searches_reach_the_figure(power_laws: PowerLaws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = power_laws({2: 100}, gpu_s=3e-3)
    search = dict.fromkeys(SEARCH_COLUMNS) | {axis: rows.iloc[0][axis] for axis in SEARCH_AXES}
    search |= {"status": "ok", "largest": 77, "smallest_failing": 78, "throughput_samples_per_s": 5.0}
    tables = {"trials": rows, "cells": summarise(rows), "crossovers": compare_lines(rows, {"disc_depth": "size"})}
    for name, table in {**tables, "searches": pd.DataFrame([search])}.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    drawn: list[Figure] = []
    monkeypatch.setattr(plt, "close", drawn.append)
    paths = [str(tmp_path / f"{name}.parquet") for name in tables]
    shown = read_view(SPEC, *paths, "", str(tmp_path / "searches.parquet"))
    save_study_figure(plot_throughput, shown, [str(tmp_path / "figure.svg")])
    cpu, gpu = drawn[0].axes
    assert "largest batch that fits: 77" in "".join(texts(cpu))
    assert "largest batch" not in "".join(texts(gpu))


@pytest.mark.parametrize("plot", PLOTS)
def test_a_study_without_any_row_has_a_figure_that_says_so(
    power_laws: PowerLaws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plot: Callable[[StudyView], Figure]
) -> None:
    rows = power_laws({2: 100, 4: 1000}).assign(study="another")
    tables = {"trials": rows, "cells": summarise(rows), "crossovers": compare_lines(rows, {"another": "size"})}
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    drawn: list[Figure] = []
    monkeypatch.setattr(plt, "close", drawn.append)
    paths = [str(tmp_path / f"{name}.parquet") for name in tables]
    shown = read_view(SPEC, *paths, "")
    save_study_figure(plot, shown, [str(tmp_path / "figure.svg"), str(tmp_path / "figure.png")])
    (figure,) = drawn
    assert [text.get_text() for text in figure.texts] == ["A title", "Nothing of this study was measured."]
    assert figure.axes == []
    assert (tmp_path / "figure.svg").stat().st_size > 1000
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_panels_name_what_the_study_has_several_of(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws({2: 100, 4: 1000}, precision=name) for name in ("fp32", "tf32")])
    listed = view(rows, precisions=["tf32", "fp32"])
    titles = [axes.get_title(loc="left") for axes in plot_times(listed).axes]
    assert [title.split(", ")[-1] for title in titles] == ["tf32", "fp32"]

"""Every kind of figure is written to files, and is readable for any study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossover.drawing.style import spaced_out
from crossover.drawing.view import StudyView
from crossover.report.figure_files import FIGURES, figures_of, write_figures
from report_pages import tables_of

from .conftest import STUDY, build_view, study_file

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]


def run_of(rows: pd.DataFrame) -> tuple[Any, dict[str, Any]]:
    studies = {STUDY: study_file(rows)}
    return tables_of(rows, studies), studies


def test_files_of_figures_are_reproducible_byte_for_byte(tmp_path: Path, power_laws: PowerLaws) -> None:
    tables, studies = run_of(power_laws({2: 100, 4: 10_000}, trials=2))
    for name in ("first", "second"):
        write_figures(tables, studies, tmp_path / name, None)
    first, second = (sorted((tmp_path / name).rglob("*.*")) for name in ("first", "second"))
    assert [path.relative_to(tmp_path / "first" / STUDY).as_posix() for path in first] == [
        f"times.{suffix}" for suffix in ("pdf", "png", "svg")
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_only_figures_with_data_are_drawn(power_laws: PowerLaws) -> None:
    tables, studies = run_of(power_laws({2: 100}))
    study = replace(studies[STUDY], figures=("times", "energy"))
    assert figures_of(tables, {STUDY: study, "not measured": study}) == [(STUDY, "times")]


def crowded(row: Row) -> list[dict[str, Any]]:
    """Trials with many settings and long names on two devices; some have no result."""
    rows = []
    axes = ((2, 400, 80_000), ("cpu", "cuda"), ("fp32", "amp-bf16", "fp16"), ("eager", "cuda-graph"), (1, 2))
    for size, device, precision, execution, trial in product(*axes):
        lost = (device == "cpu" and precision == "fp16") or (size, precision) == (80_000, "fp32")
        axes_of_cell = {"size": size, "device": device, "precision": precision, "execution": execution, "trial": trial}
        axes_of_cell |= {"variant": "accumulate_checkpoint_adafactor" if execution == "eager" else "plain"}
        axes_of_cell |= {"device_name": "A long name of a device, with its memory"}
        results = {"flops_per_step": size * 10**9, "energy_per_step_j": 1.0, "latencies_s": [1e-3, 2e-3] * 200}
        results |= {"peak_allocated_bytes": size * 10**5, "peak_rss_bytes": 10**9, "base_rss_bytes": 10**8}
        results |= {"host_bound_share": 0.5, "max_relative_error": 1e-7, "split_step_s": 1e-3, "held_s": 9e-4}
        results |= {"replayed_s": 2e-4, "products_s": 1e-4}
        results |= {f"{kind}_bytes_by_working_set": [0.0, 1e6] for kind in ("products", "others")}
        rows.append(row(**axes_of_cell, **({"status": "oom", "step_time_s": None} if lost else results)))
    return rows


def laid_out(figure: Figure) -> Figure:
    if figure.axes:
        ConstrainedLayoutEngine().execute(figure)
    figure.draw_without_rendering()
    return figure


@pytest.fixture(scope="module")
def crowded_views(row: Row) -> dict[bool, StudyView]:
    published = [
        {"device": device, "hardware": f"Hardware with a long name {number}", "label": f"a candidate to train {number}"}
        | {"batch_size": 100, "samples_per_s": 10.0 + number, "peak_allocated_bytes": 10**8 + number, "size": 2}
        | {"run_time_s": 1.0, "step_time_s": 1.0, "latency_s": 1.0}
        for device, number in product(("cpu", "cuda"), range(6))
    ]
    roofs = [{"machine": "here", "roof": "matmul", "precision": "fp32", "value": 1e18}]
    roofs += [{"machine": "here", "roof": "memory", "working_set_bytes": 2**size, "value": 1e12} for size in (20, 30)]
    roofs = [{"device": device, **roof} for device in ("cpu", "cuda") for roof in roofs]
    rows = crowded(row)
    batches = [
        cell | {"batch_size": batch}
        for cell in rows
        if cell["trial"] == 1 and cell["precision"] == "amp-bf16"
        for batch in (100, 200, 400)
    ]
    return {several: build_view(batches if several else rows, published, roofs=roofs) for several in (False, True)}


@pytest.mark.parametrize("kind", FIGURES)
def test_crowded_figures_are_readable(kind: str, crowded_views: dict[bool, StudyView]) -> None:
    figure = laid_out(FIGURES[kind].draw(crowded_views[kind == "map"]))

    whole = figure.bbox.padded(figure.dpi * 0.05)
    panels = [axes.get_window_extent() for axes in figure.axes]
    assert min(panel.width for panel in panels) > 0.15 * whole.width
    for axes in figure.axes:
        box, legend = axes.get_tightbbox(), axes.get_legend()
        assert box is not None
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
        if legend:
            assert not any(panel.overlaps(legend.get_window_extent()) for panel in panels)


def test_a_figure_shows_eight_series_and_names_the_others(row: Row) -> None:
    batches = range(1, 61)
    rows = [row(size=size, batch_size=batch) for batch, size in product(batches, (2, 4))]
    figure = laid_out(FIGURES["times"].draw(build_view(rows)))

    panels = [axes.get_title(loc="left") for axes in figure.axes if axes.lines]
    assert [f"batch {batch}" in title for batch, title in enumerate(panels, 1)] == [True] * 8
    left_out = [f"batch {batch}" for batch in batches][8:48]
    foot = " ".join(figure.get_supxlabel().split())
    assert foot == f"Not shown: {'; '.join(left_out)}; 12 more in the table of cells"
    lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert figure._supxlabel.get_window_extent().y1 <= lowest  # no public way to the text


SPARSE = {
    "one cell": [{"device": "cpu"}],
    "no result": [
        {"device": device, "size": size, "status": "oom", "step_time_s": None}
        for device, size in product(("cpu", "cuda"), (2, 4))
    ],
}


@pytest.fixture(scope="module", params=SPARSE.values(), ids=SPARSE)
def sparse_view(request: pytest.FixtureRequest, row: Row) -> StudyView:
    return build_view([row(**cell) for cell in request.param])


@pytest.mark.parametrize("kind", FIGURES)
def test_a_study_with_few_results_has_every_figure(kind: str, sparse_view: StudyView) -> None:
    figure = FIGURES[kind].draw(sparse_view)

    assert figure.get_suptitle() == "A title"


@pytest.mark.parametrize(
    ("positions", "last", "ticks"),
    [
        ([1, 10, 100], (), [1, 10, 100]),
        # Labels of twenty characters need more space.
        ([10**n for n in range(20, 26)], (), [10**20, 10**22, 10**24]),
        # Of two close sizes, the first gets the tick, or that which refinement did not add.
        ([1, 99, 100], (), [1, 99]),
        ([1, 99, 100], (99,), [1, 100]),
        ([], (), []),
    ],
)
def test_labels_of_ticks_do_not_overlap(positions: list[int], last: tuple[int, ...], ticks: list[int]) -> None:
    assert spaced_out({float(x): str(x) for x in positions}, last) == list(map(float, ticks))

"""How panels and lines over size are arranged, named and coloured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crossover.figures.curves import Looks
from crossover.figures.line_panels import Line
from crossover.figures.over_size import BY_DEVICE, BY_EXECUTION, line_panels, lost_words, x_words
from crossover.figures.views import StudyView

from crossover.figures.style import PALETTE
from crossover.tables.frames import first_row

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]


@pytest.fixture
def view(row: Row, view_of: Views) -> StudyView:
    """Two precisions and two protocols on two devices."""
    rows = [
        row(precision=precision, protocol=protocol, device=device)
        for device in ("cpu", "cuda")
        for protocol in ("as_published", "resident")
        for precision in ("fp32", "bf16")
    ]
    return view_of(rows, precisions=["fp32", "bf16"], protocols=["as_published", "resident"])


def a_point(cells: pd.DataFrame, name: str, looks: Looks) -> list[Line]:
    one = np.array([1.0])
    return [Line(name, looks.of(first_row(cells)), one, one, one, one)]


def test_by_execution_a_line_names_its_device_and_a_panel_what_else_varies(view: StudyView) -> None:
    panels = line_panels(view, view.cells, a_point, BY_EXECUTION)
    assert [panel.title for panel in panels] == ["as published", "data resident on the device"]
    assert [line.text for line in panels[0].lines] == ["CPU, fp32", "GPU, fp32", "CPU, bf16", "GPU, bf16"]


def test_by_device_the_panel_names_the_device(view: StudyView) -> None:
    panels = line_panels(view, view.cells, a_point, BY_DEVICE)
    assert panels[0].title == "CPU (Brand C1), as published"
    assert [line.text for line in panels[0].lines] == ["fp32", "bf16"]


def test_what_is_left_out_of_a_device_changes_no_name_and_no_colour(view: StudyView) -> None:
    left = view.cells[view.cells["precision"] == "bf16"]
    (line,) = line_panels(view, left, a_point, BY_DEVICE)[0].lines
    assert (line.text, line.look.colour) == ("bf16", PALETTE[1])


def test_what_a_line_lost_is_named_behind_it(row: Row, view_of: Views) -> None:
    lost: dict[str, Any] = {"step_time_s": None, "flags": None}
    assert lost_words(view_of([row()]).cells) == ""
    part = view_of([row(size=2), row(size=4000, status="oom", **lost)])
    assert lost_words(part.cells) == ", oom at 4,000"
    both = view_of([row(size=size, status=status, **lost) for size, status in ((2, "timeout"), (4, "oom"))])
    assert lost_words(both.cells) == ": timeout, oom"


def test_places_read_as_what_they_count(row: Row, view_of: Views) -> None:
    rows = [row(size=2000, parameters=680_000)]
    assert x_words(view_of(rows), view_of(rows).cells) == {2000: "2,000"}
    over = view_of(rows, x_axis="parameters")
    assert x_words(over, over.cells) == {680_000: "680 k"}

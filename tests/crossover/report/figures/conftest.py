"""Fixtures: views of made-up studies, and functions that read figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from crossover.config.study import Study
from crossover.drawing.view import StudyView, study_view
from crossover.tables.frames import LISTED
from crossover.tables.reference_files import Reference
from report_pages import study, tables_of

STUDY = "disc_depth"


def study_file(rows: pd.DataFrame, **changes: Any) -> Study:
    return study(**{f"{axis}s": list(dict.fromkeys(rows[axis])) for axis in ("size", *LISTED)} | changes)


def build_view(
    rows: Iterable[Mapping[str, Any]] | pd.DataFrame,
    published: Sequence[Mapping[str, Any]] = (),
    searches: Sequence[Mapping[str, Any]] = (),
    prices: Mapping[str, float] | None = None,
    crossover: tuple[float, float] | None = None,
    roofs: Sequence[Mapping[str, Any]] = (),
    references: Sequence[Reference] = (),
    **changes: Any,
) -> StudyView:
    """The view of a study with these rows; `changes` replace keys of its file."""
    table = pd.DataFrame(rows)
    source = {"statement": "a statement", "source": "Somebody (2019)", "crossover": crossover, "rows": list(published)}
    spec = study_file(table, published=source, **changes)
    tables = tables_of(table, {STUDY: spec}, searches=searches, prices=prices, roofs=roofs, references=references)
    return study_view(tables, spec, STUDY, "USD" if prices else None)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def view_of() -> Callable[..., StudyView]:
    return build_view


def labelled(axes: Any) -> dict[str, dict[float, float]]:
    """The points of each line with a legend entry."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    return {str(line.get_label()): as_points(line) for line in lines}


def as_points(line: Any) -> dict[float, float]:
    return {float(x): float(y) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def marked(axes: Any, marker: str) -> list[tuple[float, float]]:
    return [point for line in axes.lines if line.get_marker() == marker for point in as_points(line).items()]


def words(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def row_names(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]

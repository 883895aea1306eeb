"""Views of made-up studies, for the tests of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from crossover.analysis.comparisons import compare_lines
from crossover.analysis.published import PUBLISHED_COLUMNS
from crossover.analysis.summary import summarise
from crossover.analysis.views import StudyView, study_view


@pytest.fixture
def view_of() -> Iterator[Callable[..., StudyView]]:
    """Builds the view of study disc_depth from its rows and published results; keywords replace the file's values."""

    def build(rows: Sequence[dict[str, Any]], published: Sequence[dict[str, Any]] = (), **changes: Any) -> StudyView:
        table = pd.DataFrame(rows)
        spec = {"name": "disc_depth", "title": "A title", "x_axis": "size", "steps_per_run": None, "published": None}
        spec |= changes
        crossovers = compare_lines(table, dict.fromkeys(table["study"], spec["x_axis"]))
        view = study_view(table, summarise(table), crossovers, spec, None)
        results = pd.DataFrame(published, columns=list(PUBLISHED_COLUMNS)) if published else None
        return replace(view, published_results=results)

    yield build
    plt.close("all")

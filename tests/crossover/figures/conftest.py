"""Views of made-up studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from crossover.figures.view import StudyView, study_view
from crossover.statistics.run import tables_of
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.registry import table_of

STUDY = {
    "title": "A title",
    "x_axis": "parameters",
    "sizes": [2, 4, 8],
    "steps_per_run": None,
    "published": None,
    "variants": ["plain", "thin"],
    "protocols": ["as_published", "resident"],
    "batch_sizes": [100],
    "precisions": ["fp32", "bf16"],
    "executions": ["eager"],
}


@pytest.fixture
def view_of() -> Iterator[Callable[..., StudyView]]:
    """Builds the view of study disc_depth from its trials and published results; keywords replace the file's values."""

    def build(trials: pd.DataFrame, published_rows: Sequence[dict[str, Any]] = (), **changes: Any) -> StudyView:
        spec = STUDY | changes
        prices = spec.pop("prices", None)
        if published_rows:
            spec["published"] = {**(spec["published"] or {}), "rows": list(published_rows)}
        trainings = arrow_schema(Training).empty_table().to_pandas()
        tables = tables_of(trials, trainings, table_of("largest_batches"), {"disc_depth": spec}, prices)
        return study_view(tables, spec, "disc_depth", "USD")

    yield build
    plt.close("all")

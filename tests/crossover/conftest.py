"""Fixtures: an NVML of made-up GPUs, and views of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from crossover.figures.views import StudyView, study_view
from crossover.statistics.comparisons import compare_lines
from crossover.statistics.summary import summarise
from crossover.tables.published import PUBLISHED_COLUMNS
from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def fake_nvml() -> Callable[..., FakeNvml]:
    """Builds an NVML whose GPUs, by UUID, give the answers of a mapping and no others."""

    def build(gpus: Mapping[str, Mapping[str, Any]], installed: bool = True) -> FakeNvml:
        fakes = (FakeGpu(uuid, knows_mig=False, answers=answers) for uuid, answers in gpus.items())
        return FakeNvml(*fakes, there=installed)

    return build


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

"""Figures as files: the tables are read, one study is drawn, and each format is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from crossover.analysis.panels import blank_figure
from crossover.analysis.tables import read_table
from crossover.analysis.views import StudyView, study_view
from crossover.errors import logged
from crossover.files import atomic_path

NOTHING_MEASURED = "Nothing of this study was measured."


def draw_for_rule(plot: Callable[[StudyView], Figure], job: Any) -> None:
    """Draw one study for a rule of rules/figures.smk; `job` is what Snakemake hands to the rule's script."""
    with logged(job.log[0]):
        save_study_figure(
            plot,
            spec=job.params.study,
            path_to_measurements=job.input.measurements,
            path_to_cells=job.input.cells,
            path_to_crossovers=job.input.crossovers,
            path_to_published=job.input.published,
            path_to_searches=job.input.get("largest_batches"),
            paths_to_figures=[job.output.svg, job.output.png],
            path_to_cost_models=job.input.get("cost_models"),
        )


def save_study_figure(
    plot: Callable[[StudyView], Figure],
    spec: Mapping[str, Any],
    path_to_measurements: str,
    path_to_cells: str,
    path_to_crossovers: str,
    path_to_published: str,
    paths_to_figures: Sequence[str],
    path_to_searches: str | None = None,
    path_to_cost_models: str | None = None,
) -> None:
    """Read the tables, draw one study, and write it in the format of each path's suffix.

    The same data give the same bytes. An empty `path_to_published` or `path_to_searches` means that there are none. A
    study without any cell has a figure that says so.
    """
    view = study_view(
        read_table(Path(path_to_measurements)),
        read_table(Path(path_to_cells)),
        read_table(Path(path_to_crossovers)),
        spec,
        Path(path_to_published) if path_to_published else None,
        searches=read_table(Path(path_to_searches)) if path_to_searches else None,
        cost_models=read_table(Path(path_to_cost_models)) if path_to_cost_models else None,
    )
    figure = blank_figure(view.title, NOTHING_MEASURED) if view.cells.empty else plot(view)
    for path in map(Path, paths_to_figures):
        with atomic_path(path) as temporary:
            figure.savefig(temporary, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)

"""Figures as files: the tables are read, one study is drawn, and each format is written, with what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from crossover.answers.takeaways import takeaway
from crossover.errors import logged
from crossover.figures.panels import blank_figure
from crossover.figures.views import StudyView, study_view
from crossover.files import atomic_path
from crossover.tables.frames import read_table

NOTHING_MEASURED = "Nothing of this study was measured."

NO_DATE: Mapping[str, Mapping[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""What keeps a format from holding the time at which it was written."""


def draw_for_rule(plot: Callable[[StudyView], Figure], job: Any) -> None:
    """Draw one study for a rule of rules/figures.smk; `job` is what Snakemake hands to the rule's script.

    The kind of figure is what its files are called.
    """
    with logged(job.log[0]):
        view = read_view(
            spec=job.params.study,
            path_to_measurements=job.input.measurements,
            path_to_cells=job.input.cells,
            path_to_crossovers=job.input.crossovers,
            path_to_published=job.input.published,
            path_to_searches=job.input.get("largest_batches"),
            path_to_cost_models=job.input.get("cost_models"),
            price_per_hour=job.params.get("price_per_hour"),
            currency=job.params.get("currency"),
        )
        save_study_figure(plot, view, [job.output.svg, job.output.pdf, job.output.png])
        write_takeaway(Path(job.output.svg).stem, view, job.output.takeaway)


def read_view(
    spec: Mapping[str, Any],
    path_to_measurements: str,
    path_to_cells: str,
    path_to_crossovers: str,
    path_to_published: str,
    path_to_searches: str | None = None,
    path_to_cost_models: str | None = None,
    price_per_hour: Mapping[str, float] | None = None,
    currency: str | None = None,
) -> StudyView:
    """Read what the figures of one study show; an empty path to published results or searches: there are none."""
    return study_view(
        read_table(Path(path_to_measurements)),
        read_table(Path(path_to_cells)),
        read_table(Path(path_to_crossovers)),
        spec,
        Path(path_to_published) if path_to_published else None,
        searches=read_table(Path(path_to_searches)) if path_to_searches else None,
        cost_models=read_table(Path(path_to_cost_models)) if path_to_cost_models else None,
        price_per_hour=price_per_hour,
        currency=currency,
    )


def save_study_figure(plot: Callable[[StudyView], Figure], view: StudyView, paths_to_figures: Sequence[str]) -> None:
    """Draw one study, and write it in the format of each path's suffix.

    The same data give the same bytes. A study without any cell has a figure that says so.
    """
    figure = blank_figure(view.title, NOTHING_MEASURED) if view.cells.empty else plot(view)
    for path in map(Path, paths_to_figures):
        with atomic_path(path) as temporary:
            figure.savefig(temporary, metadata=NO_DATE.get(path.suffix))
    plt.close(figure)


def write_takeaway(kind: str, view: StudyView, path: str) -> None:
    """Write what a kind of figure shows in one line; an empty file where the data hold nothing to say."""
    with atomic_path(Path(path)) as temporary:
        temporary.write_text(takeaway(kind, view), encoding="utf-8")

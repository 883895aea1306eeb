"""The kinds of figures by name, and the pictures of those of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossover.config.figure_kinds import FIGURE_KINDS
from crossover.config.study import Study
from crossover.drawing.style import use_style
from crossover.drawing.view import Kind, study_view
from crossover.files import atomic_path
from crossover.tables.run_tables import RunTables

FORMATS: Mapping[str, Mapping[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""The formats of files, with metadata without the current time, so that the files are reproducible."""

FIGURES: Mapping[str, Kind] = {
    name: getattr(import_module(f"crossover.{module}"), name.upper()) for name, module in FIGURE_KINDS.items()
}


def figures_of(tables: RunTables, studies: Mapping[str, Study]) -> list[tuple[str, str]]:
    """The pairs of study and kind of figure with data in the tables of a run, in the order of the studies' files."""
    return [
        (name, kind)
        for name, study in studies.items()
        for study_tables in [tables.of_study(name)]
        if not study_tables.cells.empty
        for kind in study.figures
        if FIGURES[kind].applies(study_tables)
    ]


def draw_run(
    tables: RunTables,
    studies: Mapping[str, Study],
    wanted: Collection[tuple[str, str]],
    currency: str | None = None,
    formats: Sequence[str] = ("svg",),
) -> Iterator[tuple[str, str, dict[str, bytes]]]:
    """Draw the wanted pairs of study and kind; yield each with the figure in these formats.

    In the same environment, the same tables give the same bytes.
    """
    views = {study: study_view(tables, studies[study], study, currency) for study in {study for study, _ in wanted}}
    use_style()
    for study, kind in wanted:
        figure = FIGURES[kind].draw(views[study])
        # With `layout="constrained"`, the figure would be laid out again for each format.
        if figure.axes:
            ConstrainedLayoutEngine().execute(figure)
        for axes in figure.axes:
            # The last digits of the layout can differ between processes, and identifiers in the files depend on them.
            axes.set_position(np.round(axes.get_position().bounds, 6).tolist())
        pictures = {name: BytesIO() for name in formats}
        for name, picture in pictures.items():
            figure.savefig(picture, format=name, metadata=FORMATS[name])
        plt.close(figure)
        yield study, kind, {name: picture.getvalue() for name, picture in pictures.items()}


def write_figures(tables: RunTables, studies: Mapping[str, Study], folder: Path, currency: str | None) -> None:
    """Draw all figures of a run into `{folder}/{study}/{kind}.{format}`."""
    folder.mkdir(parents=True, exist_ok=True)
    for study, kind, pictures in draw_run(tables, studies, figures_of(tables, studies), currency, list(FORMATS)):
        for name, picture in pictures.items():
            with atomic_path(folder / study / f"{kind}.{name}") as temporary:
                temporary.write_bytes(picture)

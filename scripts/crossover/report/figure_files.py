"""The kinds of figures by name, and the files of those of a run."""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossover.config.figure_kinds import FIGURE_KINDS
from crossover.config.study import Study
from crossover.drawing.style import use_style
from crossover.drawing.view import Kind, StudyView, study_view
from crossover.files import atomic_path
from crossover.machine.threads import usable_cores
from crossover.tables.run_tables import RunTables

SHOWN = ".svg"
"""The format that the page shows; others are drawn when asked for."""
NO_DATE: Mapping[str, Mapping[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Metadata without the current time, so that files are reproducible."""

WORKERS = 8
"""Maximum number of drawing processes. Each needs memory for all tables of the run."""
FIGURES_OF_WORKER = 12
"""Minimum number of figures for each drawing process, whose start takes as long as drawing five."""

FIGURES: Mapping[str, Kind] = {
    name: getattr(import_module(f"crossover.{module}"), name.upper()) for name, module in FIGURE_KINDS.items()
}


def figures_of(tables: RunTables, studies: Mapping[str, Study]) -> list[tuple[str, str]]:
    """The pairs of study and kind of figure with data in the tables of a run, in the order of the studies' files."""
    return [
        (name, kind)
        for name, spec in studies.items()
        for study_tables in [tables.of_study(name)]
        if not study_tables.cells.empty
        for kind in spec.figures
        if FIGURES[kind].applies(study_tables)
    ]


def draw_run(
    tables: RunTables,
    studies: Mapping[str, Study],
    folder: Path,
    wanted: Collection[tuple[str, str]],
    currency: str | None = None,
    suffixes: Sequence[str] = (SHOWN,),
) -> list[Path]:
    """Draw the wanted pairs of study and kind into `{folder}/{study}/{kind}{suffix}`; return the paths.

    In the same environment, the same tables give byte-identical files.
    """
    names = {study for study, _ in wanted}
    views = {study: study_view(tables, studies[study], study, currency) for study in names}
    use_style()
    save = partial(_save, views, folder, suffixes)
    context = multiprocessing.get_context("fork")
    workers = min(usable_cores(), WORKERS, len(wanted) // FIGURES_OF_WORKER)
    if workers < 2:
        return [path for figure in wanted for path in save(figure)]
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        # The views are sent to a process once a chunk.
        return [path for paths in pool.map(save, wanted, chunksize=FIGURES_OF_WORKER // 2) for path in paths]


def _save(
    views: Mapping[str, StudyView], folder: Path, suffixes: Sequence[str], study_and_kind: tuple[str, str]
) -> list[Path]:
    study, kind = study_and_kind
    view = views[study]
    figure = FIGURES[kind].draw(view)
    # With `layout="constrained"`, the figure would be laid out again for each format.
    if figure.axes:
        ConstrainedLayoutEngine().execute(figure)
    for axes in figure.axes:
        # The last digits of the layout can differ between processes, and identifiers in the files depend on them.
        axes.set_position(np.round(axes.get_position().bounds, 6).tolist())
    paths = [folder / study / f"{kind}{suffix}" for suffix in suffixes]
    for path in paths:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, metadata=NO_DATE.get(path.suffix))
    plt.close(figure)
    return paths

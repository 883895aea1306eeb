"""All kinds of figures, and drawing those of a run into files."""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from crossover.figures import kinds
from crossover.figures.panels import blank_figure
from crossover.figures.style import use_style
from crossover.figures.view import StudyView, study_view
from crossover.files import atomic_path
from crossover.machine.threads import usable_cores
from crossover.tables.run_tables import RunTables

SUFFIXES = (".svg", ".pdf", ".png")
NO_DATE: Mapping[str, Mapping[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Keeps a file from holding the time at which it was written."""

WORKERS = 8
"""Most processes that draw at once; each holds the whole run's tables."""


@dataclass(frozen=True)
class Kind:
    """A kind of figure."""

    caption: str
    draw: Callable[[StudyView], Figure]
    applies: Callable[[RunTables], bool]
    """Whether a study's tables hold something that this kind shows."""


def _kind(name: str) -> Kind:
    module = importlib.import_module(f"{kinds.__name__}.{name}")
    return Kind(module.CAPTION, module.draw, getattr(module, "applies", lambda _: True))


FIGURES: Mapping[str, Kind] = {found.name: _kind(found.name) for found in pkgutil.iter_modules(kinds.__path__)}
"""Every kind of figure by its name, which is its module's."""


def figures_of(tables: RunTables, studies: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The studies and kinds of figures that a run's tables hold something for, in the order of the studies' files."""
    own = {name: tables.of_study(name) for name in studies}
    return [
        (name, kind) for name, spec in studies.items() for kind in spec["figures"] if FIGURES[kind].applies(own[name])
    ]


def draw_run(
    tables: RunTables,
    studies: Mapping[str, Mapping[str, Any]],
    folder: Path,
    wanted: Iterable[tuple[str, str]],
    currency: str | None = None,
) -> list[Path]:
    """Draw the wanted kinds of figures of studies into `{folder}/{study}/{kind}.svg`, .pdf and .png.

    The same tables give the same bytes.
    """
    todo = [(study, kind) for study, kind in wanted]
    views = {study: study_view(tables, studies[study], study, currency) for study, _ in todo}
    use_style()
    save = partial(_save, views, folder)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(max(1, min(len(todo), usable_cores(), WORKERS)), mp_context=context) as pool:
        return [path for paths in pool.map(save, todo) for path in paths]


def _save(views: Mapping[str, StudyView], folder: Path, wanted: tuple[str, str]) -> list[Path]:
    study, kind = wanted
    view = views[study]
    empty = view.cells.empty
    figure = blank_figure(view.title, "Nothing of this study was measured.") if empty else FIGURES[kind].draw(view)
    # A figure that has a layout engine of its own is laid out and drawn twice for each format.
    if figure.axes:
        ConstrainedLayoutEngine().execute(figure)
    for axes in figure.axes:
        # The solver's last digits differ from process to process, and a file's identifiers depend on them.
        axes.set_position(np.round(axes.get_position().bounds, 6).tolist())
    paths = [folder / study / f"{kind}{suffix}" for suffix in SUFFIXES]
    for path in paths:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, metadata=NO_DATE.get(path.suffix))
    plt.close(figure)
    return paths
